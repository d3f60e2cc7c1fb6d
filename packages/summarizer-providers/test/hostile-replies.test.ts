import process from "node:process";
import { describe, expect, it } from "vitest";
import { ThroughlineError, type AssistantMessage, type ChatModel, type SummaryRequest } from "@throughline/core";
import { createChatSummarizer } from "../src/chat-summarizer.ts";
import { createSummarizerBreakers } from "../src/summarizer-breakers.ts";
import { parseSummary } from "../src/parse-summary.ts";
import { createTestClock } from "./test-clock.ts";

const request: SummaryRequest = {
  text: "[User]: Verschiebe den Parser.",
  previousSummary: null,
  maxOutputTokens: 2000,
};

/** What a model said, as a provider's adapter hands it on. */
function saying(message: Partial<AssistantMessage>): ChatModel {
  const whole = { role: "assistant", provider: "p", model: "m", stopReason: "stop", content: [], ...message };
  return {
    provider: "p",
    api: "anthropic",
    chat: () => Promise.resolve({ message: whole as AssistantMessage, stopReason: whole.stopReason, usage: null }),
  };
}

const summarize = (message: Partial<AssistantMessage>): Promise<string> =>
  createChatSummarizer({ model: { chat: saying(message), modelId: "m", windowTokens: null } })
    .summarize(request)
    .then(({ summary }) => summary);
const text = (words: string): Partial<AssistantMessage> => ({ content: [{ type: "text", text: words }] });

describe("a summary that came in an odd shape", () => {
  it("stands in another language than the conversation, with headings of its own", async () => {
    const words = "主题:\n- 解析器移到 src/parse.ts\n\n当前状态:\n- 测试通过。";
    expect(await summarize(text(words))).toBe(words);
  });

  it("loses nothing that JSON calls by a name of its own, and no fence around it stays", async () => {
    const fields = { topics: ["The parser"], Identifiers: ["req_9f3", "a1b2"], meta: { owner: "Ann" } };
    const summary = await summarize(text(`\`\`\`json\n${JSON.stringify(fields)}\n\`\`\``));
    for (const word of ["The parser", "req_9f3", "a1b2", "Ann"]) expect(summary).toContain(word);
    expect(summary).not.toMatch(/[{}`]/);
  });

  it("has whole characters only, from JSON as from text", async () => {
    expect((await summarize(text("Topics:\n- half \ud83d of one"))).isWellFormed()).toBe(true);
    expect((await summarize(text('{"topics": ["half \\ud83d of one"]}'))).isWellFormed()).toBe(true);
  });

  it("is taken without what it cost, where the provider does not say", async () => {
    const chat = saying(text("Topics:\n- The parser"));
    const reply = await createChatSummarizer({ model: { chat, modelId: "m", windowTokens: null } }).summarize(request);
    expect(reply.usage).toEqual({ calls: 1 });
  });

  it("is one line of 200,000 characters: refused for its size, in no time", async () => {
    await expect(summarize(text("x".repeat(400_000)))).rejects.toMatchObject({ details: { problem: "too-large" } });
  });
});

describe("a summary of many megabytes", () => {
  it("is refused before anything of it is read", async () => {
    for (const part of ["```\n", "<summary>", "Topics:\n", '{"a":', "- x\n  "]) {
      const long = text(part.repeat((16 * 1024 * 1024) / part.length));
      await expect(summarize(long)).rejects.toMatchObject({ details: { problem: "too-large" } });
    }
  });
});

describe("what is no summary", () => {
  it.each<readonly [string, Partial<AssistantMessage>]>([
    ["empty", { content: [{ type: "thinking", thinking: "Let me think about it." }] }],
    ["empty", { content: [] }],
    ["empty", text("NO_REPLY")],
    ["cut-off", { ...text("Topics:\n- a\n\nIdentifiers:\n- req_9f"), stopReason: "length" }],
    ["tool-call", { content: [{ type: "toolCall", id: "c", name: "read", arguments: {} }], stopReason: "toolUse" }],
    ["refusal", { ...text("Topics:\n- a"), stopReason: "error" }],
  ])("%s: %j", async (problem, message) => {
    await expect(summarize(message)).rejects.toMatchObject({ code: "SUMMARY_REJECTED", details: { problem } });
  });
});

describe("an answer that is made to take for ever", () => {
  it.each([
    ["tags that open and never close", "<think>".repeat(28_000)],
    ["two kinds of them", "<think><analysis>".repeat(12_000)],
    ["fences", "```\n".repeat(50_000)],
    ["a fence and spaces", `\`\`\`${" ".repeat(200_000)}x`],
    ["opened objects", "{".repeat(200_000)],
    ["a list in one line", "- ".repeat(100_000)],
  ])("%s is read in one pass", (_, answer) => {
    const started = process.cpuUsage();
    expect(parseSummary(answer).text.length).toBeGreaterThan(0);
    // Of the processor: a busy machine is not a slow expression.
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(2000);
  });

  it("thinking goes wherever it stands, and what is not closed stays", () => {
    const answer = "<think>a</think>One<THINKING>b <think>c</think></THINKING> two<analysis>three";
    expect(parseSummary(answer).text).toBe("One two<analysis>three");
  });
});

describe("breakers on a bad day", () => {
  const good = { summarize: () => Promise.resolve({ summary: "s", source: "good", usage: null }) };
  const bad = { summarize: () => Promise.reject(new ThroughlineError("SUMMARY_FAILED", "down")) };

  it("a file that cannot be written fails no summary and hides no failure", async () => {
    const breakers = createSummarizerBreakers({
      clock: createTestClock(),
      onChange: () => {
        throw new Error("the disk is full");
      },
    });
    for (let time = 0; time < 2; time++)
      await expect(breakers.guard("b", bad).summarize(request)).rejects.toMatchObject({ code: "SUMMARY_FAILED" });
    expect(await breakers.guard("b", good).summarize(request)).toMatchObject({ summary: "s" });
    expect(breakers.status()).toMatchObject([{ name: "b", state: "closed", failures: 0 }]);
  });

  it.each([
    ["of a version to come", { v: 2, summarizers: { b: { failures: 3, openedAtMs: 1, lastError: null } } }],
    ["cut off", '{"v":1,"summ'],
    ["of another shape", { v: 1, summarizers: [["b", 3]] }],
    ["with numbers that are none", { v: 1, summarizers: { b: { failures: "3", openedAtMs: Number.NaN } } }],
  ])("a state %s counts as none, and everyone is asked", async (_, snapshot) => {
    const breakers = createSummarizerBreakers({ clock: createTestClock(), snapshot });
    expect(await breakers.guard("b", good).summarize(request)).toMatchObject({ summary: "s" });
  });

  it("a clock that goes back during the probe keeps nobody out for longer than the pause", async () => {
    const clock = createTestClock();
    const breakers = createSummarizerBreakers({ clock, resetMs: 1000 });
    for (let time = 0; time < 3; time++)
      await breakers
        .guard("b", bad)
        .summarize(request)
        .catch(() => null);
    clock.advance(1000);
    const gate = Promise.withResolvers<never>();
    const probe = breakers.guard("b", { summarize: () => gate.promise }).summarize(request);
    clock.advance(-86_400_000);
    gate.reject(new Error("down"));
    await expect(probe).rejects.toThrow("down");
    expect(breakers.status()).toMatchObject([{ state: "open", retryInMs: 1000 }]);
    clock.advance(86_400_000 * 2);
    expect(await breakers.guard("b", good).summarize(request)).toMatchObject({ summary: "s" });
  });
});
