import type { ChatRequest } from "@throughline/core";
import { createProviderSimulator, type ProviderSimulator, type ProviderSimulatorOptions } from "@throughline/testing";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { openai } from "../src/openai.ts";

let simulator: ProviderSimulator;
afterEach(() => simulator.close());

async function start(options: ProviderSimulatorOptions): Promise<string> {
  simulator = createProviderSimulator(options);
  await simulator.start();
  return `${simulator.url}/v1`;
}

const body = (number = 0): Record<string, unknown> => simulator.requests[number]?.body as Record<string, unknown>;
const chat = (modelId: string, how: Partial<ChatRequest> = {}): ChatRequest => ({
  modelId,
  system: null,
  messages: [{ role: "user", content: "Hi" }],
  ...how,
});
const responses = (modelId: string, how: Partial<ChatRequest> = {}): ChatRequest => ({
  modelId,
  system: null,
  messages: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }],
  ...how,
});

describe("Chat Completions", () => {
  it("keeps the thinking of servers that show it, whole and streamed", async () => {
    const content = [
      { type: "thinking" as const, thinking: "I think of it." },
      { type: "text" as const, text: "Yes." },
    ];
    const baseUrl = await start({
      fallback: () => ({ kind: "answer", content }),
      models: { "*": { reasoningContent: true } },
    });
    const model = openai("gpt-5", { api: "openai", baseUrl, apiKey: "k", provider: "deepseek" }).chat;
    const expected = [
      { type: "thinking", thinking: "I think of it.", thinkingSignature: "reasoning_content" },
      { type: "text", text: "Yes." },
    ];
    expect((await model.chat(chat("deepseek-reasoner"))).message).toMatchObject({
      provider: "deepseek",
      content: expected,
    });
    const streamed = await model.chat(chat("deepseek-reasoner", { onDelta: () => undefined }));
    expect(streamed.message.content).toEqual(expected);
  });

  it("names the answer's room and the effort as the model wants them", async () => {
    const baseUrl = await start({ fallback: () => "Yes." });
    await openai("gpt-5", { api: "openai", baseUrl, apiKey: "k" }).chat.chat(
      chat("gpt-5", { maxOutputTokens: 100, thinkingLevel: "low" }),
    );
    expect(body(0)).toMatchObject({ max_completion_tokens: 100, reasoning_effort: "low" });
    const older = openai("gpt-5", { api: "openai", baseUrl, apiKey: "k", outputLimitField: "max_tokens" }).chat;
    await older.chat(chat("llama-3", { maxOutputTokens: 100 }));
    expect(body(1)).toMatchObject({ max_tokens: 100 });
    expect(body(1)).not.toHaveProperty("reasoning_effort");
    expect(simulator.refusals).toEqual([]);
  });

  it("takes a refusal for what the model says, and a stream without its last chunks for broken off", async () => {
    await start({});
    const chunk = (choice: object): string => `data: ${JSON.stringify({ id: "c", model: "m", choices: [choice] })}\n\n`;
    const refusal = chunk({ index: 0, delta: { refusal: "I would rather not." }, finish_reason: null });
    const stop = chunk({ index: 0, delta: {}, finish_reason: "stop" });
    const texts = [`${refusal}${stop}data: [DONE]\n\n`, refusal];
    const client = new OpenAI({
      apiKey: "k",
      maxRetries: 0,
      fetch: async () => new Response(texts.shift(), { headers: { "content-type": "text/event-stream" } }),
    });
    const model = openai("gpt-5", { api: "openai", client }).chat;
    const { message } = await model.chat(chat("gpt-4o", { onDelta: () => undefined }));
    expect(message).toMatchObject({ stopReason: "stop", content: [{ type: "text", text: "I would rather not." }] });
    await expect(model.chat(chat("gpt-4o", { onDelta: () => undefined }))).rejects.toBeInstanceOf(
      OpenAI.APIConnectionError,
    );
  });

  it("keeps what comes as a list of parts, as from Mistral's reasoning models", async () => {
    await start({});
    const thinking = { type: "thinking", thinking: [{ type: "text", text: "I think." }] };
    const content = [thinking, { type: "text", text: "Yes." }];
    const completion = {
      id: "c",
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    };
    const client = new OpenAI({ apiKey: "k", fetch: async () => Response.json(completion) });
    const { message } = await openai("gpt-5", { api: "openai", client }).chat.chat(chat("magistral"));
    expect(message.content).toEqual([
      { type: "thinking", thinking: "I think." },
      { type: "text", text: "Yes." },
    ]);
  });

  it("joins the pieces of calls that come mixed, and calls that come whole and unnumbered", async () => {
    await start({});
    const call = (
      index: number | undefined,
      id: string | undefined,
      name: string | undefined,
      args: string,
    ): object => ({
      ...(index === undefined ? {} : { index }),
      ...(id === undefined ? {} : { id }),
      function: { ...(name === undefined ? {} : { name }), arguments: args },
    });
    const chunk = (calls: readonly object[], finish: string | null = null): string =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: finish }] })}\n\n`;
    const mixed =
      chunk([call(0, "a", "one", ""), call(1, "b", "two", '{"x"')]) +
      chunk([call(1, undefined, undefined, ":1}"), call(0, undefined, undefined, "{}")], "tool_calls");
    const whole = chunk([call(undefined, "a", "one", "{}"), call(undefined, "b", "two", '{"x":1}')], "stop");
    const texts = [mixed, whole];
    const client = new OpenAI({
      apiKey: "k",
      fetch: async () => new Response(texts.shift(), { headers: { "content-type": "text/event-stream" } }),
    });
    for (let time = 0; time < 2; time++) {
      const { message } = await openai("gpt-5", { api: "openai", client }).chat.chat(
        chat("m", { onDelta: () => undefined }),
      );
      expect(message.content).toEqual([
        { type: "toolCall", id: "a", name: "one", arguments: {} },
        { type: "toolCall", id: "b", name: "two", arguments: { x: 1 } },
      ]);
      expect(message.stopReason).toBe("toolUse");
    }
  });
});

describe("Responses", () => {
  it("asks for encrypted reasoning of models that reason, keeps nothing at the provider, counts what it would send", async () => {
    const baseUrl = await start({ fallback: () => "Yes." });
    const model = openai("gpt-5", { api: "openai-responses", baseUrl, apiKey: "k" }).chat;
    await model.chat(responses("gpt-5.2", { thinkingLevel: "high", system: "You help.", maxOutputTokens: 5 }));
    expect(body(0)).toMatchObject({
      store: false,
      include: ["reasoning.encrypted_content"],
      reasoning: { effort: "high", summary: "auto" },
      instructions: "You help.",
      max_output_tokens: 16,
    });
    await model.chat(responses("gpt-4o"));
    expect(body(1)).not.toHaveProperty("include");
    expect(await model.countTokens?.(responses("gpt-5.2", { system: "You help." }))).toBe(8);
    expect(simulator.refusals).toEqual([]);
  });

  it("fails with the SDK's error when a response of status 200 failed, whole and streamed", async () => {
    const baseUrl = await start({ models: { "*": { windowTokens: 20 } } });
    const model = openai("gpt-5", { api: "openai-responses", baseUrl, apiKey: "k", maxRetries: 0 }).chat;
    const long = responses("gpt-5", {
      messages: [{ role: "user", content: [{ type: "input_text", text: "long ".repeat(100) }] }],
      onDelta: () => undefined,
    });
    const error = await model.chat(long).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(OpenAI.APIError);
    expect(error).toMatchObject({ code: "context_length_exceeded" });
    const failed = { id: "r", status: "failed", error: { code: "server_error", message: "It broke." }, output: [] };
    const client = new OpenAI({ apiKey: "k", fetch: async () => Response.json(failed) });
    await expect(
      openai("gpt-5", { api: "openai-responses", client }).chat.chat(responses("gpt-5")),
    ).rejects.toMatchObject({
      code: "server_error",
    });
  });

  it("separates the parts of a reasoning summary, streamed as whole", async () => {
    await start({});
    const part = (text: string): object => ({ type: "summary_text", text });
    const item = { type: "reasoning", id: "rs_1", summary: [part("One."), part("Two.")], encrypted_content: "e" };
    const place = { item_id: "rs_1", output_index: 0 };
    const done = { id: "r", status: "completed", output: [item] };
    const events = [
      { type: "response.created", response: { id: "r", output: [] } },
      { type: "response.output_item.added", output_index: 0, item: { ...item, summary: [] } },
      { type: "response.reasoning_summary_part.added", ...place, summary_index: 0 },
      { type: "response.reasoning_summary_text.delta", ...place, summary_index: 0, delta: "One." },
      { type: "response.reasoning_summary_part.added", ...place, summary_index: 1 },
      { type: "response.reasoning_summary_text.delta", ...place, summary_index: 1, delta: "Two." },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: done },
    ];
    const stream = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    const answers = [Response.json(done), new Response(stream, { headers: { "content-type": "text/event-stream" } })];
    const client = new OpenAI({ apiKey: "k", fetch: async () => answers.shift() ?? Response.error() });
    const model = openai("gpt-5", { api: "openai-responses", client }).chat;
    const thinking = [{ type: "thinking", thinking: "One.\n\nTwo.", thinkingSignature: JSON.stringify(item) }];
    expect((await model.chat(responses("gpt-5"))).message.content).toEqual(thinking);
    const streamed = await model.chat(responses("gpt-5", { onDelta: () => undefined }));
    expect(streamed.message.content).toEqual(thinking);
  });
});
