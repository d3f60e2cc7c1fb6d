import Anthropic from "@anthropic-ai/sdk";
import type { ChatRequest } from "@throughline/core";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, describe, expect, it } from "vitest";
import { anthropic } from "../src/anthropic.ts";

let simulator: ProviderSimulator;
afterEach(() => simulator.close());

const hi = { role: "user", content: [{ type: "text", text: "Hi" }] };
const request = (modelId: string, how: Partial<ChatRequest> = {}): ChatRequest => ({
  modelId,
  system: null,
  messages: [hi],
  ...how,
});

async function start(...replies: readonly string[]): Promise<string> {
  simulator = createProviderSimulator({ replies });
  await simulator.start();
  return simulator.url;
}

const body = (number = 0): Record<string, unknown> => simulator.requests[number]?.body as Record<string, unknown>;

describe("Anthropic's requests", () => {
  it("ask models from 4.6 on for an effort, and older ones for a budget beside the answer's room", async () => {
    const model = anthropic("claude-opus-5", { apiKey: "k", baseUrl: await start("1", "2", "3", "4", "5") }).chat;
    await model.chat(request("claude-opus-4-6", { thinkingLevel: "high" }));
    expect(body(0)).toMatchObject({ thinking: { type: "adaptive" }, output_config: { effort: "high" } });
    await model.chat(request("claude-sonnet-4-5-20250929", { thinkingLevel: "low" }));
    expect(body(1)).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2048 }, max_tokens: 10_240 });
    await model.chat(request("claude-3-7-sonnet-20250219", { thinkingLevel: "high", maxOutputTokens: 4000 }));
    expect(body(2)).toMatchObject({ thinking: { budget_tokens: 2976 }, max_tokens: 4000 });
    await model.chat(request("claude-opus-4-1", { thinkingLevel: "high", maxOutputTokens: 1500 }));
    expect(body(3)).not.toHaveProperty("thinking");
    await model.chat(request("claude-opus-4-6"));
    expect(body(4)).toMatchObject({ max_tokens: 8192 });
    expect(body(4)).not.toHaveProperty("thinking");
    expect(simulator.refusals).toEqual([]);
  });

  it("leave a budget off where the tool loop has lost its thinking, which the API would refuse", async () => {
    const model = anthropic("claude-opus-5", { apiKey: "k", baseUrl: await start("Yes.") }).chat;
    const messages = [
      hi,
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "look", input: {} }] },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "found" }] }],
      },
    ];
    await model.chat(request("claude-opus-4-1", { thinkingLevel: "low", messages }));
    expect(body(0)).not.toHaveProperty("thinking");
    expect(simulator.refusals).toEqual([]);
  });

  it("ask for the prompt to be kept, for as long as wanted or not at all", async () => {
    const baseUrl = await start("1", "2", "3");
    for (const promptCache of ["5m", "1h", "off"] as const)
      await anthropic("claude-opus-5", { apiKey: "k", baseUrl, promptCache }).chat.chat(request("claude-opus-5"));
    expect(body(0)["cache_control"]).toEqual({ type: "ephemeral" });
    expect(body(1)["cache_control"]).toEqual({ type: "ephemeral", ttl: "1h" });
    expect(body(2)).not.toHaveProperty("cache_control");
  });

  it("carry headers, and no key to a server that wants none", async () => {
    const baseUrl = await start("1");
    const model = anthropic("claude-opus-5", { baseUrl, headers: { "anthropic-beta": "some-beta-1" } }).chat;
    const error = await model.chat(request("claude-opus-5")).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ status: 401 });
    const { headers } = simulator.requests[0] ?? {};
    expect(headers).toMatchObject({ "anthropic-beta": "some-beta-1" });
    expect(Object.keys(headers ?? {})).not.toContain("x-api-key");
    expect(Object.keys(headers ?? {})).not.toContain("authorization");
  });
});

describe("Anthropic's figures", () => {
  it("keep cache and thinking apart, and streamed ones are those of the last event", async () => {
    simulator = createProviderSimulator({
      fallback: () => ({
        kind: "answer",
        content: "Yes.",
        usage: { inputTokens: 5, cacheReadTokens: 700, cacheWriteTokens: 80, outputTokens: 60, thinkingTokens: 40 },
      }),
    });
    await simulator.start();
    const model = anthropic("claude-opus-5", { apiKey: "k", baseUrl: simulator.url }).chat;
    const usage = { input: 5, output: 60, cacheRead: 700, cacheWrite: 80, reasoning: 40, totalTokens: 845 };
    expect((await model.chat(request("claude-opus-5"))).message.usage).toEqual(usage);
    const streamed = await model.chat(request("claude-opus-5", { onDelta: () => undefined }));
    expect(streamed.message.usage).toEqual(usage);
  });

  it("come from the counting endpoint before a call, without using up an answer", async () => {
    const model = anthropic("claude-opus-5", { apiKey: "k", baseUrl: await start() }).chat;
    expect(await model.countTokens?.(request("claude-opus-5", { system: "You help.", maxOutputTokens: 10 }))).toBe(8);
    expect(simulator.refusals).toEqual([]);
  });

  it("state a model's window, or null for a model without one", async () => {
    await start();
    const answers: Record<string, object> = {
      "claude-opus-5": { id: "claude-opus-5", max_input_tokens: 1_000_000 },
      // As a gateway in front of other providers describes a model.
      "claude-relayed": { id: "claude-relayed", object: "model" },
    };
    const client = new Anthropic({
      apiKey: "k",
      maxRetries: 0,
      fetch: async (url) => {
        const found = answers[String(url).split("/").at(-1) ?? ""];
        return found === undefined ? Response.json({ type: "error" }, { status: 404 }) : Response.json(found);
      },
    });
    const model = anthropic("claude-opus-5", { client }).chat;
    expect(await model.windowTokens?.("claude-opus-5")).toBe(1_000_000);
    expect(await model.windowTokens?.("claude-none")).toBeNull();
    expect(await model.windowTokens?.("claude-relayed")).toBeNull();
    await expect(model.windowTokens?.("claude-opus-5", AbortSignal.abort())).rejects.toThrow();
  });
});

describe("Anthropic's own blocks", () => {
  it("are kept whole: server tools, citations, and the input of one that came in pieces", async () => {
    await start();
    const citation = { type: "char_location", cited_text: "a" };
    const events = [
      {
        type: "message_start",
        message: { id: "msg_1", model: "claude-opus-5-20260101", content: [], usage: { input_tokens: 3 } },
      },
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
      },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"query":' } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '"x"}' } },
      { type: "content_block_stop", index: 0 },
      {
        type: "content_block_start",
        index: 1,
        content_block: { type: "web_search_tool_result", tool_use_id: "s1", content: [] },
      },
      { type: "content_block_stop", index: 1 },
      { type: "content_block_start", index: 2, content_block: { type: "text", text: "", citations: null } },
      { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "As cited." } },
      { type: "content_block_delta", index: 2, delta: { type: "citations_delta", citation } },
      { type: "content_block_stop", index: 2 },
      { type: "message_delta", delta: { stop_reason: "pause_turn" }, usage: { output_tokens: 4 } },
      { type: "message_stop" },
    ];
    const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
    const headers = { "content-type": "text/event-stream" };
    const client = new Anthropic({ apiKey: "k", fetch: async () => new Response(text, { headers }) });
    const { message, stopReason } = await anthropic("claude-opus-5", { client }).chat.chat(
      request("claude-opus-5", { onDelta: () => undefined }),
    );
    expect(stopReason).toBe("pause_turn");
    expect(message).toMatchObject({
      stopReason: "stop",
      model: "claude-opus-5",
      responseModel: "claude-opus-5-20260101",
      responseId: "msg_1",
      content: [
        { type: "server_tool_use", id: "s1", input: { query: "x" } },
        { type: "web_search_tool_result", tool_use_id: "s1", content: [] },
        { type: "text", text: "As cited.", citations: [citation] },
      ],
    });
  });
});
