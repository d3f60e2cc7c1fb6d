import { describe, expect, it } from "vitest";
import { createTokenEstimator } from "@throughline/tokens";
import type { Countable } from "../src/message-parts.ts";
import type { VocabularyName } from "../src/load-vocabulary.ts";
import type { TokenCount } from "../src/token-counter.ts";
import type { TokenEstimator } from "@throughline/tokens";

const anyModel = { provider: null, modelId: "any" };

/** One token a character: a count says which characters were counted. */
function byCharacter(): TokenEstimator {
  return createTokenEstimator({ loadVocabulary: async () => (slice) => slice.length });
}

async function count(...messages: Countable[]): Promise<TokenCount> {
  return (await byCharacter().counterFor(anyModel)).countMessages(messages);
}

const blocks = [
  { type: "text", text: "abc", textSignature: "never" },
  { type: "thinking", thinking: "de", thinkingSignature: "never" },
  { type: "toolCall", id: "call-1", name: "fg", arguments: { h: 1 } },
];

describe("countMessages", () => {
  it.each<[string, Countable, number]>([
    ["a plain text", "abc", 3],
    ["a user message", { role: "user", content: "abc" }, 3],
    [
      "blocks",
      { role: "assistant", content: blocks, usage: { input: 9 }, model: "m", stopReason: "toolUse" },
      3 + 2 + 2 + 7,
    ],
    [
      "a tool result without its details",
      { role: "toolResult", toolCallId: "c", content: "abc", details: { diff: "x".repeat(99) } },
      3,
    ],
    ["a command", { role: "bashExecution", command: "ls", output: "abc", exitCode: 1 }, 5],
    [
      "a neutral command",
      { role: "bashExecution", command: "ls", output: "abc", content: [{ type: "text", text: "Ran ls: abc" }] },
      11,
    ],
    ["a custom message", { role: "custom", customType: "note", content: "abc", details: "never" }, 3],
    ["a neutral summary", { role: "compactionSummary", tokensBefore: 9, content: [{ type: "text", text: "abc" }] }, 3],
    ["a summary as pi keeps it", { role: "branchSummary", summary: "abc", fromId: "f" }, 3],
    [
      "a message record",
      { type: "message", id: "1", parentId: null, timestamp: "", message: { role: "user", content: "abc" } },
      3,
    ],
    [
      "a stored record",
      { seq: 1, id: "1", record: { type: "custom_message", customType: "t", content: "abc", details: 1 } },
      3,
    ],
    ["a compaction record", { type: "compaction", id: "1", summary: "abc", firstKeptEntryId: "0", tokensBefore: 5 }, 3],
    ["a branch summary record", { type: "branch_summary", id: "1", summary: "abc", fromId: "0" }, 3],
    ["an unknown block", { role: "user", content: [{ type: "unknown", originalType: "n", block: { type: "n" } }] }, 12],
    [
      "Anthropic's wire shape",
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "abc" }] }] },
      3,
    ],
    [
      "Anthropic's calls",
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "fg", input: { h: 1 } }] },
      9,
    ],
    [
      "chat completions",
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "fg", arguments: '{"h":1}' } }],
      },
      9,
    ],
    ["a tool message", { role: "tool", tool_call_id: "c", content: "abc" }, 3],
    ["responses input", { role: "user", content: [{ type: "input_text", text: "abc" }] }, 3],
    ["a responses call", { type: "function_call", call_id: "c", name: "fg", arguments: '{"h":1}' }, 9],
    ["a responses result", { type: "function_call_output", call_id: "c", output: "abc" }, 3],
    [
      "Gemini's parts",
      { role: "model", parts: [{ text: "abc" }, { functionCall: { name: "fg", args: { h: 1 } } }] },
      12,
    ],
    ["Ollama's thinking", { role: "assistant", content: "abc", thinking: "de" }, 5],
  ])("counts %s", async (_, message, bareTokens) => {
    expect(await count(message)).toEqual({ bareTokens, fixedTokens: 0, messages: 1 });
  });

  it.each<[string, Countable]>([
    [
      "a command kept out of the context",
      { role: "bashExecution", command: "ls", output: "abc", excludeFromContext: true },
    ],
    ["a failed reply", { role: "assistant", content: "abc", stopReason: "error" }],
    [
      "an aborted reply",
      { type: "message", id: "1", message: { role: "assistant", content: "abc", stopReason: "aborted" } },
    ],
    ["a role nobody sends", { role: "notification", content: "abc" }],
    ["a label", { type: "label", id: "1", targetId: "0", label: "abc" }],
    ["a usage record", { type: "usage", id: "1", usage: { input: 5 } }],
    ["a checkpoint", { type: "checkpoint", id: "1", checkpoint: { summary: "abc" } }],
    ["a record of ours", { type: "custom", id: "1", customType: "throughline.call", data: { text: "abc" } }],
  ])("counts nothing of %s", async (_, message) => {
    expect(await count(message)).toEqual({ bareTokens: 0, fixedTokens: 0, messages: 0 });
  });

  it("counts images and tool calls also without a vocabulary", async () => {
    const counter = await byCharacter().counterFor(anyModel, { method: "chars4" });
    const message = {
      role: "assistant",
      content: [
        { type: "toolCall", id: "c", name: "read", arguments: { path: "abc" } },
        { type: "image", data: "" },
      ],
    };
    expect(counter.countMessages([message])).toEqual({ bareTokens: 1 + 3, fixedTokens: 1600, messages: 1 });
  });

  it("counts tools by their JSON, and what their presence costs", async () => {
    const counter = await byCharacter().counterFor({ provider: "anthropic", modelId: "claude-opus-4-5" });
    expect(counter.countTools([{ name: "a" }, { name: "bc" }])).toEqual({
      bareTokens: 12 + 13,
      fixedTokens: 549,
      messages: 0,
    });
    expect(counter.countTools([])).toEqual({ bareTokens: 0, fixedTokens: 0, messages: 0 });
  });
});

describe("createTokenEstimator", () => {
  it("loads a vocabulary once, and only when it is needed", async () => {
    const loaded: VocabularyName[] = [];
    const estimator = createTokenEstimator({
      loadVocabulary: async (name) => {
        loaded.push(name);
        return (slice) => slice.length;
      },
    });
    await estimator.counterFor(anyModel, { method: "chars4" });
    await estimator.counterFor(anyModel, { method: "heuristic" });
    expect(loaded).toEqual([]);
    await Promise.all(
      ["claude-opus-4-5", "claude-sonnet-5", "gpt-5", "gpt-4o", "gpt-4"].map((modelId) =>
        estimator.counterFor({ provider: null, modelId }),
      ),
    );
    expect(loaded).toEqual(["claude", "o200k_base", "cl100k_base"]);
  });

  it("goes on without a vocabulary that cannot be loaded, and says so once", async () => {
    const told: unknown[] = [];
    const estimator = createTokenEstimator({
      loadVocabulary: () => Promise.reject(new Error("not installed")),
      onFallback: (vocabulary, cause) => told.push([vocabulary, (cause as Error).message]),
    });
    const counters = await Promise.all([estimator.counterFor(anyModel), estimator.counterFor(anyModel)]);
    expect(counters.map(({ method, version }) => [method, version])).toEqual([
      ["heuristic", "heuristic@1"],
      ["heuristic", "heuristic@1"],
    ]);
    expect(counters[0]?.countText("two words")).toBe(2);
    expect(told).toEqual([["claude", "not installed"]]);
  });

  it("counts a message once, however often it is asked, and tells contents and tokenizers apart", async () => {
    const estimator = byCharacter();
    const counter = await estimator.counterFor(anyModel);
    const message = { role: "user", content: "abc" };
    for (let time = 0; time < 3; time++) expect(counter.countMessages([{ ...message }]).bareTokens).toBe(3);
    expect(estimator.work).toMatchObject({ slices: 1, cacheHits: 2 });
    const split = (texts: string[]): object => ({
      role: "user",
      content: texts.map((text) => ({ type: "text", text })),
    });
    counter.countMessages([split(["ab", "c"]), split(["a", "bc"])]);
    (await estimator.counterFor({ provider: null, modelId: "gpt-5" })).countMessages([message]);
    expect(estimator.work).toMatchObject({ slices: 6, cacheHits: 2 });
  });

  it("keeps no more counts than it may", async () => {
    const estimator = createTokenEstimator({ loadVocabulary: async () => (slice) => slice.length, cacheEntries: 2 });
    const counter = await estimator.counterFor(anyModel);
    counter.countMessages(["a", "b", "a", "c", "a", "b"]);
    expect(estimator.work).toMatchObject({ slices: 4, cacheHits: 2 });
  });
});
