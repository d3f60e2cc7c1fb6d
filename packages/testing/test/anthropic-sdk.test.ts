import Anthropic from "@anthropic-ai/sdk";
import { afterEach, describe, expect, it } from "vitest";
import { createProviderSimulator } from "../src/provider-simulator.ts";
import type { ProviderSimulator, ProviderSimulatorOptions } from "../src/simulator-options.ts";
import type { SimulatedReply } from "../src/simulated-reply.ts";

let simulator: ProviderSimulator;

async function connect(options: ProviderSimulatorOptions): Promise<Anthropic> {
  simulator = createProviderSimulator(options);
  await simulator.start();
  return new Anthropic({ apiKey: "test", baseURL: simulator.url, maxRetries: 2 });
}

const model = "claude-opus-5";
const hi: Anthropic.MessageParam = { role: "user", content: "Hi" };
const ask = (messages: Anthropic.MessageParam[]): Anthropic.MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 2000,
  messages,
});
const looks: SimulatedReply = {
  kind: "answer",
  content: [
    { type: "thinking", thinking: "Two places, so two looks. Größe 😀." },
    { type: "redacted-thinking" },
    { type: "text", text: "I look in both. 👀 é" },
    { type: "tool-call", name: "look", input: { place: "München 🏔" } },
    { type: "tool-call", name: "look", input: {} },
  ],
};

function answersTo(message: Anthropic.Message): Anthropic.MessageParam {
  const calls = message.content.filter((block) => block.type === "tool_use");
  return { role: "user", content: calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "found" })) };
}

function asParam(message: Anthropic.Message): Anthropic.MessageParam {
  return { role: "assistant", content: message.content as Anthropic.ContentBlockParam[] };
}

describe("Anthropic's SDK", () => {
  afterEach(() => simulator.close());

  it("gets a text and its usage", async () => {
    const client = await connect({ replies: ["Hello."] });
    const message = await client.messages.create(ask([hi]));
    expect(message.content).toEqual([{ type: "text", text: "Hello.", citations: null }]);
    expect(message.stop_reason).toBe("end_turn");
    // "Hi" is one token and a message is four; "Hello." is two.
    expect(message.usage).toMatchObject({ input_tokens: 5, output_tokens: 2, cache_read_input_tokens: 0 });
    expect(simulator.requests[0]).toMatchObject({
      api: "anthropic",
      outcome: "answered",
      status: 200,
      promptTokens: 5,
    });
  });

  it("gets the same message streamed as whole, at any byte border, and may go on from it", async () => {
    const client = await connect({ replies: [looks, { ...looks, chunkBytes: [1, 7, 3] }, "Done."], idPrefix: "a" });
    const whole = await client.messages.create(ask([hi]));
    const events: string[] = [];
    const stream = client.messages.stream(ask([hi]));
    stream.on("streamEvent", ({ type }) => void events.push(type));
    const streamed = await stream.finalMessage();
    const shape = ({ content }: Anthropic.Message): unknown =>
      JSON.parse(
        JSON.stringify(content, (key, value: unknown) => (["id", "signature", "data"].includes(key) ? "" : value)),
      );
    expect(shape(streamed)).toEqual(shape(whole));
    expect(streamed.stop_reason).toBe("tool_use");
    expect(streamed.usage.output_tokens).toBe(whole.usage.output_tokens);
    expect(new Set(events)).toEqual(
      new Set([
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
      ]),
    );
    await client.messages.create(ask([hi, asParam(streamed), answersTo(streamed)]));
    expect(simulator.refusals).toEqual([]);
    const [first, second] = simulator.requests;
    expect(JSON.parse(new TextDecoder().decode(first?.bytes))).toEqual(first?.body);
    expect(second?.body).toMatchObject({ stream: true });
  });

  it("retries by itself after 429 and 529", async () => {
    const client = await connect({
      replies: [
        { kind: "error", status: 429, retryAfterMs: 1 },
        { kind: "error", status: 529, retryAfterMs: 1 },
        "Hello.",
      ],
    });
    expect((await client.messages.create(ask([hi]))).stop_reason).toBe("end_turn");
    expect(simulator.requests.map(({ outcome, status }) => [outcome, status])).toEqual([
      ["failed", 429],
      ["failed", 529],
      ["answered", 200],
    ]);
    expect(simulator.requests.map(({ headers }) => headers["x-stainless-retry-count"])).toEqual(["0", "1", "2"]);
  });

  it("meets each failure with its class", async () => {
    const client = (
      await connect({ replies: [401, 403, 404, 413].map((status) => ({ kind: "error" as const, status })) })
    ).withOptions({ maxRetries: 0 });
    const failure = (): Promise<unknown> =>
      client.messages.create(ask([hi])).then(
        () => "no failure",
        (error: unknown) => error,
      );
    expect(await failure()).toBeInstanceOf(Anthropic.AuthenticationError);
    expect(await failure()).toBeInstanceOf(Anthropic.PermissionDeniedError);
    expect(await failure()).toBeInstanceOf(Anthropic.NotFoundError);
    expect(await failure()).toMatchObject({
      status: 413,
      error: { type: "error", error: { type: "request_too_large" } },
    });
    expect(await failure()).toMatchObject({
      status: 500,
      message: expect.stringContaining("script has no reply left") as string,
    });
    expect(simulator.refusals.map(({ kind }) => kind)).toEqual(["script"]);
  });

  it("sees a stream cut off, and one that ends with an error event", async () => {
    const cut = (how: "cut" | "error-event"): SimulatedReply => ({
      kind: "answer",
      content: "A longer text than that.",
      breakAfter: { events: 4, how },
    });
    const client = await connect({ replies: [cut("cut"), cut("error-event")] });
    const texts: string[] = [];
    const read = async (): Promise<void> => {
      const stream = client.messages.stream(ask([hi])).on("text", (text) => void texts.push(text));
      await stream.finalMessage();
    };
    await expect(read()).rejects.toThrow();
    await expect(read()).rejects.toThrow(/overloaded_error/);
    expect(texts).toEqual(["A longer tex", "A longer tex"]);
    await expect.poll(() => simulator.requests.map(({ outcome }) => outcome)).toEqual(["cut", "cut"]);
  });

  it("can abort, and the simulator knows", async () => {
    const client = await connect({
      replies: [{ kind: "answer", content: "A longer text than that.", eventDelayMs: 60_000 }],
    });
    const controller = new AbortController();
    const stream = client.messages.stream(ask([hi]), { signal: controller.signal });
    stream.on("connect", () => controller.abort());
    await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIUserAbortError);
    await expect.poll(() => simulator.requests[0]?.outcome).toBe("aborted");
  });

  it("learns the window from the refusal", async () => {
    const client = await connect({
      replies: ["Yes."],
      models: { "*": { windowTokens: 3000 } },
      maxRequestBytes: 100_000,
    });
    const long = (bytes: number): Anthropic.MessageParam => ({ role: "user", content: "a".repeat(bytes) });
    const failure = (bytes: number): Promise<unknown> =>
      client.messages.create(ask([long(bytes)])).catch((error: unknown) => error);
    const texts = async (bytes: number): Promise<string> => String(((await failure(bytes)) as Error).message);
    expect(await texts(12_000)).toContain("prompt is too long: 3004 tokens > 3000 maximum");
    expect(await texts(8_000)).toContain(
      "input length and `max_tokens` exceed context limit: 2004 + 2000 > 3000, decrease input length or `max_tokens` and try again",
    );
    expect(await failure(100_000)).toMatchObject({ status: 413, error: { error: { type: "request_too_large" } } });
    expect(simulator.refusals.map(({ kind }) => kind)).toEqual(["overflow", "overflow", "bytes"]);
    expect(await client.messages.countTokens({ model, messages: [long(12_000)] })).toMatchObject({
      input_tokens: 3004,
    });
    await client.messages.create({ ...ask([long(8_000)]), max_tokens: 996 });
  });

  it("stops at the window where the model does that instead of refusing", async () => {
    const client = await connect({
      replies: ["abcdefgh".repeat(4)],
      models: { [model]: { windowTokens: 9, outputOverflow: "stop" } },
    });
    const message = await client.messages.create(ask([hi]));
    expect(message).toMatchObject({
      stop_reason: "model_context_window_exceeded",
      content: [{ text: "abcdefghabcdefgh" }],
      usage: { output_tokens: 4 },
    });
  });
});
