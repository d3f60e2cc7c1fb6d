import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { createProviderSimulator } from "../src/provider-simulator.ts";
import type { AnswerReply } from "../src/simulated-reply.ts";
import type { ProviderSimulator, ProviderSimulatorOptions } from "../src/simulator-options.ts";

let simulator: ProviderSimulator;

async function connect(options: ProviderSimulatorOptions): Promise<OpenAI> {
  simulator = createProviderSimulator(options);
  await simulator.start();
  return new OpenAI({ apiKey: "test", baseURL: `${simulator.url}/v1`, maxRetries: 2 });
}

const model = "gpt-4o";
const hi = { role: "user" as const, content: "Hi" };
const looks: AnswerReply = {
  kind: "answer",
  content: [
    { type: "thinking", thinking: "Two places, so two looks. Größe 😀." },
    { type: "text", text: "I look in both. 👀 é" },
    { type: "tool-call", name: "look", input: { place: "München 🏔" } },
    { type: "tool-call", name: "look", input: {} },
  ],
};
const failing = (error: unknown): unknown => error;

/** What the service gives out may be sent back; the types of the two differ in items that are not used here. */
function asInput(output: OpenAI.Responses.ResponseOutputItem[]): OpenAI.Responses.ResponseInputItem[] {
  return output as OpenAI.Responses.ResponseInputItem[];
}

/** The fields of ids replaced, so that two answers can be compared. */
function withoutIds(value: unknown): unknown {
  const text = JSON.stringify(value, (key, part: unknown) => (key === "id" || key === "call_id" ? "" : part));
  return JSON.parse(text);
}

describe("OpenAI's SDK on Chat Completions", () => {
  afterEach(() => simulator.close());

  it(
    "gets the same message streamed as whole, at any byte border, and may go on from it",
    { tags: ["slow"] },
    async () => {
      const client = await connect({ replies: [looks, { ...looks, chunkBytes: [5, 1, 2] }, "Done."] });
      const whole = await client.chat.completions.create({ model, messages: [hi] });
      const stream = client.chat.completions.stream({ model, messages: [hi], stream_options: { include_usage: true } });
      const streamed = await stream.finalChatCompletion();
      const [first, second] = [whole, streamed].map(({ choices }) => choices[0]);
      expect(second?.message.content).toBe(first?.message.content);
      const calls = second?.message.tool_calls?.map((call) =>
        call.type === "function" ? call.function.arguments : "",
      );
      expect(calls).toEqual(['{"place":"München 🏔"}', "{}"]);
      expect(second?.finish_reason).toBe("tool_calls");
      expect(streamed.usage).toEqual(whole.usage);
      expect(whole.usage).toMatchObject({ prompt_tokens: 5, completion_tokens_details: { reasoning_tokens: 10 } });
      const message = first?.message as OpenAI.ChatCompletionMessage;
      const results = (message.tool_calls ?? []).map(({ id }) => ({
        role: "tool" as const,
        tool_call_id: id,
        content: "found",
      }));
      await client.chat.completions.create({ model, messages: [hi, message, ...results] });
      expect(simulator.refusals).toEqual([]);
    },
  );

  it("shows thinking where the server does that, and takes it back only there", async () => {
    const client = await connect({ replies: [looks, "Done."], models: { deepseek: { reasoningContent: true } } });
    const { choices } = await client.chat.completions.create({ model: "deepseek", messages: [hi] });
    const thinking = { reasoning_content: "Two places, so two looks. Größe 😀." };
    expect(choices[0]?.message).toMatchObject(thinking);
    const messages = [hi, { role: "assistant" as const, content: "Yes.", ...thinking }, hi];
    await client.chat.completions.create({ model: "deepseek", messages });
    await expect(client.chat.completions.create({ model, messages })).rejects.toThrow(
      "Unknown parameter: 'messages[1].reasoning_content'.",
    );
  });

  it("retries by itself after 429 and 500", async () => {
    const client = await connect({
      replies: [429, 500].map((status) => ({ kind: "error" as const, status, retryAfterMs: 1 })),
      fallback: () => "Hello.",
    });
    const completion = await client.chat.completions.create({ model, messages: [hi] });
    expect(completion.choices[0]?.message.content).toBe("Hello.");
    expect(simulator.requests.map(({ status }) => status)).toEqual([429, 500, 200]);
  });

  it("sees a stream cut off, an error inside it, and can abort", async () => {
    const text = "A longer text than that.";
    const client = await connect({
      replies: [
        { kind: "answer", content: text, breakAfter: { events: 2, how: "cut" } },
        { kind: "answer", content: text, breakAfter: { events: 2, how: "error-event" } },
        { kind: "answer", content: text, eventDelayMs: 60_000 },
      ],
    });
    const read = async (): Promise<void> => {
      const stream = await client.chat.completions.create({ model, messages: [hi], stream: true });
      for await (const chunk of stream) if (simulator.requests.length === 3 && chunk) stream.controller.abort();
    };
    await expect(read()).rejects.toThrow();
    await expect(read()).rejects.toThrow("That model is currently overloaded");
    await read();
    await expect.poll(() => simulator.requests.map(({ outcome }) => outcome)).toEqual(["cut", "cut", "aborted"]);
  });

  it("is refused over the window, by the prompt and by the answer's room", async () => {
    const client = await connect({ models: { "*": { windowTokens: 100 } } });
    const long = { role: "user" as const, content: "a".repeat(400) };
    const tools = [{ type: "function" as const, function: { name: "look", parameters: { type: "object" } } }];
    const input = await client.chat.completions.create({ model, messages: [long] }).catch(failing);
    expect(input).toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      param: "messages",
      type: "invalid_request_error",
    });
    expect(String(input)).toContain(
      "This model's maximum context length is 100 tokens. However, your messages resulted in 104 tokens. Please reduce the length of the messages.",
    );
    expect(String(await client.chat.completions.create({ model, messages: [long], tools }).catch(failing))).toContain(
      "resulted in 124 tokens (104 in the messages, 20 in the functions). Please reduce the length of the messages or functions.",
    );
    expect(
      String(await client.chat.completions.create({ model, messages: [hi], max_tokens: 96 }).catch(failing)),
    ).toContain(
      "However, you requested 101 tokens (5 in the messages, 96 in the completion). Please reduce the length of the messages or completion.",
    );
    const streamed = client.chat.completions.create({ model, messages: [long], stream: true });
    await expect(streamed).rejects.toMatchObject({ code: "context_length_exceeded" });
    expect(simulator.refusals.map(({ kind }) => kind)).toEqual(["overflow", "overflow", "overflow", "overflow"]);
  });

  it("needs the right key and a known model when the simulator is told which", async () => {
    const client = await connect({
      apiKey: "other",
      models: { [model]: {} },
      onlyListedModels: true,
      replies: ["Hello."],
    });
    await expect(client.chat.completions.create({ model, messages: [hi] })).rejects.toBeInstanceOf(
      OpenAI.AuthenticationError,
    );
    const known = client.withOptions({ apiKey: "other" });
    await expect(known.chat.completions.create({ model: "gpt-9", messages: [hi] })).rejects.toMatchObject({
      status: 404,
      code: "model_not_found",
    });
    await known.chat.completions.create({ model, messages: [hi] });
    expect(simulator.refusals.map(({ kind }) => kind)).toEqual(["credentials", "model"]);
  });
});

describe("OpenAI's SDK on Responses", () => {
  afterEach(() => simulator.close());

  const responses = { model: "gpt-5", input: [hi], store: false, include: ["reasoning.encrypted_content" as const] };

  it("gets the same items streamed as whole, numbered events, and may go on from them", async () => {
    const client = await connect({ replies: [looks, { ...looks, chunkBytes: [3, 1, 4] }, "Done."] });
    const whole = await client.responses.create(responses);
    const numbers: number[] = [];
    const stream = client.responses.stream(responses);
    stream.on("event", (event) => void numbers.push(event.sequence_number));
    const streamed = await stream.finalResponse();
    expect(whole.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call", "function_call"]);
    const shape = (output: unknown): unknown =>
      JSON.parse(
        JSON.stringify(withoutIds(output))
          .replaceAll(/"(encrypted_content|parsed_arguments|parsed)":("[^"]*"|null|\{[^}]*\}),?/g, "")
          .replaceAll(",}", "}"),
      );
    expect(shape(streamed.output)).toEqual(shape(whole.output));
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(streamed.usage).toEqual(whole.usage);
    const results = whole.output.flatMap((item) =>
      item.type === "function_call"
        ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "found" }]
        : [],
    );
    const done = await client.responses.create({ ...responses, input: [hi, ...asInput(whole.output), ...results] });
    expect(done.output_text).toBe("Done.");
    expect(simulator.refusals).toEqual([]);
  });

  it("gets a call of a custom tool as a text, also of one that the input adds in a namespace", async () => {
    const client = await connect({
      replies: [
        { kind: "answer", content: [{ type: "tool-call", name: "exec", input: "text(1)" }] },
        { kind: "answer", content: [{ type: "tool-call", name: "wait", input: { seconds: 1 } }] },
      ],
    });
    const tools = [
      { type: "custom", name: "exec" },
      { type: "function", name: "wait", parameters: {} },
    ];
    const added = { type: "additional_tools", role: "developer", tools: [{ type: "namespace", name: "own", tools }] };
    // The item is of the beta types only.
    const input = [added, hi] as unknown as OpenAI.Responses.ResponseInput;
    const events: string[] = [];
    const stream = client.responses.stream({ ...responses, input });
    stream.on("event", ({ type }) => void events.push(type));
    const { output } = await stream.finalResponse();
    expect(output).toMatchObject([{ type: "custom_tool_call", name: "exec", namespace: "own", input: "text(1)" }]);
    expect(events).toContain("response.custom_tool_call_input.done");
    const second = await client.responses.create({ ...responses, input });
    expect(second.output).toMatchObject([{ type: "function_call", namespace: "own", arguments: '{"seconds":1}' }]);
    expect(simulator.refusals).toEqual([]);
  });

  it("is refused what follows from reasoning without that reasoning", async () => {
    const client = await connect({ replies: [looks], fallback: () => "Done." });
    const { output } = await client.responses.create(responses);
    const [reasoning, message] = output.map(({ id }) => id);
    const results = output.flatMap((item) =>
      item.type === "function_call"
        ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "found" }]
        : [],
    );
    const next = (items: typeof output): Promise<unknown> =>
      client.responses.create({ ...responses, input: [hi, ...asInput(items), ...results] });
    await expect(next(output.slice(1))).rejects.toThrow(
      `Item '${message}' of type 'message' was provided without its required 'reasoning' item: '${reasoning}'.`,
    );
    const tampered = output.map((item) => (item.type === "reasoning" ? { ...item, encrypted_content: "abc" } : item));
    await expect(next(tampered)).rejects.toMatchObject({ code: "invalid_encrypted_content" });
    await next(output);
  });

  it("continues a stored response by its id", async () => {
    const client = await connect({ replies: [looks, "Done.", "Yes."] });
    const first = await client.responses.create({ model: "gpt-5", input: "Hi" });
    await expect(
      client.responses.create({ model: "gpt-5", input: "Go on", previous_response_id: first.id }),
    ).rejects.toThrow(/No tool output found for function call call_sim_/);
    const results = first.output.flatMap((item) =>
      item.type === "function_call"
        ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "found" }]
        : [],
    );
    const second = await client.responses.create({ model: "gpt-5", input: results, previous_response_id: first.id });
    expect(second.usage?.input_tokens).toBeGreaterThan(first.usage?.input_tokens ?? 0);
    expect(simulator.refusals).toHaveLength(1);
  });

  it("is refused over the window: with the status, or inside the stream", async () => {
    const client = await connect({ models: { "*": { windowTokens: 100 } }, replies: ["Hello."] });
    const long = { model: "gpt-5", input: "a".repeat(400) };
    const says = "Your input exceeds the context window of this model. Please adjust your input and try again.";
    await expect(client.responses.create(long)).rejects.toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      message: `400 ${says}`,
    });
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await client.responses.create({ ...long, stream: true })) events.push(event);
    expect(events.map(({ type }) => type)).toEqual(["response.created", "response.in_progress", "response.failed"]);
    expect(events.at(-1)).toMatchObject({
      response: { status: "failed", error: { code: "context_length_exceeded", message: says } },
    });
    expect(simulator.refusals.map(({ kind, status }) => [kind, status])).toEqual([
      ["overflow", 400],
      ["overflow", 200],
    ]);
    expect(await client.responses.inputTokens.count(long)).toMatchObject({ input_tokens: 104 });
    const cut = await client.responses.create({ ...long, truncation: "auto" });
    expect(cut.usage?.input_tokens).toBe(100);
  });

  it("sees a stream cut off, retries after 429, and can abort", async () => {
    const text = "A longer text than that.";
    const client = await connect({
      replies: [
        { kind: "answer", content: text, breakAfter: { events: 5, how: "cut" } },
        { kind: "error", status: 429, retryAfterMs: 1 },
        { kind: "answer", content: text, stop: "length" },
        { kind: "answer", content: text, eventDelayMs: 60_000 },
      ],
    });
    const read = async (): Promise<readonly string[]> => {
      const types: string[] = [];
      const stream = await client.responses.create({ model, input: "Hi", stream: true });
      for await (const event of stream) {
        types.push(event.type);
        if (simulator.requests.length === 4) stream.controller.abort();
      }
      return types;
    };
    await expect(read()).rejects.toThrow();
    expect((await read()).at(-1)).toBe("response.incomplete");
    expect(await read()).toEqual(["response.created"]);
    await expect
      .poll(() => simulator.requests.map(({ outcome }) => outcome))
      .toEqual(["cut", "failed", "answered", "aborted"]);
  });
});
