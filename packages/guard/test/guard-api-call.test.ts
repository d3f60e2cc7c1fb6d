import Anthropic from "@anthropic-ai/sdk";
import { afterEach, describe, expect, it } from "vitest";
import { createProviderSimulator } from "@throughline/testing";
import type { ProviderSimulator, SimulatedReply } from "@throughline/testing";
import { compactInFlight, inFlightSplit } from "../src/compact-in-flight.ts";
import { guardApiCall } from "../src/guard-api-call.ts";
import { safePromptTokens } from "../src/request-size.ts";
import type { ApiCallRequest } from "../src/guard-api-call.ts";
import type { GuardEvent } from "../src/guard-options.ts";
import { toolTurn } from "./models.ts";

const model = "claude-opus-4-5";
const tooLong: SimulatedReply = {
  kind: "error",
  status: 400,
  message: "prompt is too long: 200100 tokens > 200000 maximum",
};
let simulator: ProviderSimulator;

interface Guarded {
  readonly events: GuardEvent[];
  readonly requests: ApiCallRequest[];
  ask(messages: unknown[], more?: { tools?: unknown[]; windowTokens?: number }): Promise<Anthropic.Message>;
}

/** The preset over Anthropic's SDK, as the first document's program calls it. */
async function connect(replies: readonly SimulatedReply[]): Promise<Guarded> {
  simulator = createProviderSimulator({ replies });
  await simulator.start();
  const client = new Anthropic({ apiKey: "test", baseURL: simulator.url, maxRetries: 0 });
  const events: GuardEvent[] = [];
  const requests: ApiCallRequest[] = [];
  return {
    events,
    requests,
    async ask(messages, more = {}) {
      return guardApiCall({
        modelId: model,
        system: "You are a helper.",
        messages,
        create: async (request) => {
          requests.push(structuredClone(request));
          return client.messages.create(request as Anthropic.MessageCreateParamsNonStreaming);
        },
        onEvent: (event) => void events.push(event),
        ...more,
      });
    },
  };
}

const history = (turns: number, result = "found"): unknown[] => [
  ...Array.from({ length: turns }, (_, number) => toolTurn("anthropic", number, result)).flat(),
  { role: "user", content: "And now?" },
];

describe("claw0's guard", () => {
  afterEach(() => simulator.close());

  it("sends the call as it is first, with its reply budget, and tools only when given", async () => {
    const guarded = await connect(["Fine.", "Fine."]);
    const messages = history(1);
    const before = structuredClone(messages);
    await guarded.ask(messages);
    await guarded.ask(messages, { tools: [{ name: "read", input_schema: { type: "object" } }] });
    expect(guarded.requests[0]).toEqual({ model, max_tokens: 8096, system: "You are a helper.", messages: before });
    expect(guarded.requests[1]).toHaveProperty("tools");
    expect(messages).toEqual(before);
  });

  it("cuts results over 30 % of the limit to their head, then succeeds in place", async () => {
    const guarded = await connect([tooLong, "Fine."]);
    const messages = history(1, "x".repeat(250_000));
    const same = messages;
    await guarded.ask(messages);
    expect(messages).toBe(same);
    const [, , result] = messages as [unknown, unknown, { content: { content: string }[] }];
    // 30 % of 180,000 tokens at four characters each.
    expect(result.content[0]?.content).toBe(
      `${"x".repeat(216_000)}\n\n[... truncated (250000 chars total, showing first 216000) ...]`,
    );
    expect(simulator.requests).toHaveLength(2);
  });

  it("summarizes the older half when that is not enough, in place", async () => {
    const guarded = await connect([tooLong, "They looked at files.", "Fine."]);
    const messages = history(3);
    await guarded.ask(messages);
    const summary = guarded.requests[1];
    expect(summary).toMatchObject({
      max_tokens: 2048,
      system: "You are a conversation summarizer. Be concise and factual.",
    });
    expect(summary).not.toHaveProperty("tools");
    expect(messages[0]).toEqual({ role: "user", content: "[Previous conversation summary]\nThey looked at files." });
    expect(simulator.refusals).toEqual([]);
    expect(guarded.requests.at(-1)?.messages).toEqual(messages);
  });

  it("raises after three calls, and leaves the list alone", async () => {
    const guarded = await connect([tooLong, tooLong, "A summary.", tooLong]);
    const messages = history(3, "x".repeat(250_000));
    const before = structuredClone(messages);
    await expect(guarded.ask(messages)).rejects.toMatchObject({
      code: "CONTEXT_OVERFLOW",
      cause: { status: 400 },
      details: { attempts: [{ attempt: 0 }, { attempt: 1 }, { attempt: 2 }] },
    });
    expect(guarded.requests.filter(({ max_tokens }) => max_tokens === 8096)).toHaveLength(3);
    expect(messages).toEqual(before);
  });

  it("drops the old messages for a note when the summary fails, and says so", async () => {
    const guarded = await connect([tooLong, { kind: "error", status: 500 }, "Fine."]);
    const messages = history(3);
    await guarded.ask(messages);
    expect(messages[0]).toMatchObject({
      content: expect.stringMatching(/\d+ earlier messages were left out/) as string,
    });
    expect(guarded.events.find(({ name }) => name === "guard.summary-failed")).toMatchObject({ droppedMessages: 5 });
  });

  it("keeps the summary's own call from overflowing", async () => {
    const guarded = await connect([tooLong, tooLong, tooLong, "A summary.", "Fine."]);
    await guarded.ask([
      ...Array.from({ length: 12 }, (_, index) => ({
        role: index % 2 ? "assistant" : "user",
        content: "word ".repeat(9000),
      })),
      { role: "user", content: "?" },
    ]);
    const lengths = guarded.requests.slice(1, 4).map(({ messages }) => JSON.stringify(messages).length);
    expect(lengths[1]).toBeLessThan((lengths[0] ?? 0) * 0.6);
    expect(lengths[2]).toBeLessThan((lengths[1] ?? 0) * 0.6);
  });

  it("passes on what the first document would have destroyed a history for [C40, GRD-06]", async () => {
    const guarded = await connect([{ kind: "error", status: 401, message: "invalid token" }]);
    const messages = history(20);
    const before = structuredClone(messages);
    await expect(guarded.ask(messages)).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
    expect([guarded.requests.length, messages]).toEqual([1, before]);
  });
});

describe("compaction in flight", () => {
  const compact = compactInFlight({ content: "blocks", summarize: async () => "S" });
  const run = async (messages: readonly unknown[]): Promise<readonly unknown[] | null> => {
    const found = await compact({
      messages,
      system: null,
      maxOutputTokens: null,
      reason: "input",
      targetTokens: null,
      observedTokens: null,
      estimate: () => 0,
      signal: null,
    });
    return found?.messages ?? null;
  };

  it("keeps a fifth and at least four, compresses a half and at least two [GRD-12, C27b]", async () => {
    expect([5, 6, 8, 10, 20, 100].map((count) => inFlightSplit(count))).toEqual([
      { keep: 4, compress: 1 },
      { keep: 4, compress: 2 },
      { keep: 4, compress: 4 },
      { keep: 4, compress: 5 },
      { keep: 4, compress: 10 },
      { keep: 20, compress: 50 },
    ]);
    expect(await run(history(1).slice(0, 4))).toBeNull();
  });

  it("never parts a call from its result, and roles alternate, for every length", async () => {
    const all = history(60) as { role: string; content: unknown }[];
    for (let count = 5; count <= all.length; count++) {
      const compacted = (await run(all.slice(0, count))) as { role: string; content: unknown }[] | null;
      if (compacted === null) throw new Error(`${count} messages were not compacted`);
      const roles = compacted.map(({ role }) => role);
      expect(roles.every((role, index) => role !== roles[index - 1])).toBe(true);
      const text = JSON.stringify(compacted);
      const [calls, results] = [/"tool_use","id":"(\w+)"/g, /"tool_use_id":"(\w+)"/g].map((pattern) =>
        [...text.matchAll(pattern)].map((match) => match[1]),
      );
      expect(results?.every((id) => calls?.includes(id))).toBe(true);
      expect(compacted[0]).toMatchObject({ role: "user", content: "[Previous conversation summary]\nS" });
    }
    const even = await run(history(6));
    expect(even?.[1]).toEqual({
      role: "assistant",
      content: [{ type: "text", text: "Understood, I have the context." }],
    });
  });

  it("gives the summarizer plain text, with inputs as JSON and results cut to 500 characters", async () => {
    let prompt = "";
    await compactInFlight({ summarize: async (request) => ((prompt = request.prompt), "S") })({
      messages: history(3, "r".repeat(2000)),
      system: null,
      maxOutputTokens: null,
      reason: "input",
      targetTokens: null,
      observedTokens: null,
      estimate: () => 0,
      signal: null,
    });
    expect(prompt).toContain('[assistant called read]: {"path":"0.txt"}');
    expect(prompt).toContain(`[tool result]: ${"r".repeat(500)}\n`);
    expect(prompt).not.toContain("r".repeat(501));
  });

  it("leaves 180,000 of 200,000 tokens for the prompt [C38b, C38c]", () => {
    expect([safePromptTokens(200_000, 8192), safePromptTokens(200_000, 8096)]).toEqual([180_000, 180_000]);
    expect(safePromptTokens(200_000, 32_000)).toBe(164_000);
  });
});
