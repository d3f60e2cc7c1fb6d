import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { breakDown } from "../src/context-breakdown.ts";
import { createTokenEstimator, emptyCalibration, estimateContext, gaugeOf, lastActual } from "@throughline/tokens";
import { crossThresholds, freshThresholds } from "../src/threshold-crossings.ts";
import type { ContextBreakdown } from "../src/context-breakdown.ts";
import type { TokenCounter } from "../src/token-counter.ts";
import type { TokenEstimator } from "@throughline/tokens";

const opus = { provider: "anthropic", modelId: "claude-opus-4-5" };
const overhead = 15;

/** One token a character, times 1.1 for the model. */
function byCharacter(): TokenEstimator {
  return createTokenEstimator({ loadVocabulary: async () => (slice) => slice.length });
}
const counter: TokenCounter = await byCharacter().counterFor(opus);

const user = (content: string): object => ({ role: "user", content });
const result = (content: string): object => ({ role: "toolResult", toolCallId: "c", content });
const reply = (input: number, output: number): object => ({
  role: "assistant",
  model: opus.modelId,
  stopReason: "stop",
  content: [{ type: "text", text: "fine" }],
  usage: { input, output, cacheRead: 0, cacheWrite: 0 },
});
const letters = (length: number): string => "some words ".repeat(Math.ceil(length / 11)).slice(0, length);

describe("estimateContext", () => {
  it("is the actual while nothing is new", () => {
    const messages = [user("hello"), reply(1000, 50)];
    const estimate = estimateContext(
      { messages },
      { counter, calibration: emptyCalibration, actual: lastActual(messages, opus) },
    );
    expect(estimate).toEqual({ tokens: 1050, lowTokens: 1050, highTokens: 1050, source: "actual" });
  });

  it("adds what is new to the actual, and only what is new", () => {
    const messages = [user("hello"), reply(1000, 50), user(letters(100)), result(letters(200))];
    const options = { counter, calibration: emptyCalibration, actual: lastActual(messages, opus) };
    const estimate = estimateContext({ messages, system: letters(9999) }, options);
    expect(estimate).toMatchObject({ tokens: 1050 + 330 + 2 * overhead, source: "actual+delta" });
    expect(estimate.lowTokens).toBeLessThan(estimate.tokens);
    expect(estimate.highTokens).toBeGreaterThanOrEqual(1050 + 300 * 1.1 * 1.2 + 2 * overhead);
  });

  it("counts system prompt, tools and all messages without an actual", () => {
    const tools = [{ name: "read" }];
    const request = { messages: [user(letters(100))], system: letters(50), tools };
    const estimate = estimateContext(request, { counter, calibration: emptyCalibration, actual: null });
    expect(estimate.source).toBe("tokenizer");
    expect(estimate.tokens).toBe(Math.round((100 + 50 + 15) * 1.1 + 549 + overhead));
  });

  it("says so when no vocabulary was to be had", async () => {
    const poor = await byCharacter().counterFor(opus, { method: "heuristic" });
    const { source } = estimateContext(
      { messages: ["hello"] },
      { counter: poor, calibration: emptyCalibration, actual: null },
    );
    expect(source).toBe("heuristic");
  });

  it("reaches 90 % before the turn when 30,000 tokens arrive at 80 %", () => {
    const messages = [user("hello"), reply(159_000, 1000), user(letters(30_000 / 1.1))];
    const actual = lastActual(messages, opus);
    expect(actual?.tokens).toBe(160_000);
    const estimate = estimateContext({ messages }, { counter, calibration: emptyCalibration, actual });
    const { percent } = gaugeOf(estimate, { windowTokens: 200_000 });
    expect(crossThresholds(freshThresholds, 80, [50, 75, 90]).firedPercent).toBe(75);
    expect(crossThresholds(freshThresholds, percent, [50, 75, 90]).firedPercent).toBe(90);
  });

  it("costs a turn the same after 10 messages and after 10,000", async () => {
    const costs: unknown[] = [];
    for (const length of [10, 1000, 10_000]) {
      const estimator = byCharacter();
      const measured = await estimator.counterFor(opus);
      const messages: object[] = Array.from({ length }, (_, index) => user(`${letters(500)} ${index}`));
      let reads = 0;
      const watched = new Proxy([...messages, reply(1000, 50), user(letters(3000)), result(letters(5000))], {
        get(target, property, receiver): unknown {
          if (typeof property === "string" && /^\d+$/.test(property)) reads += 1;
          return Reflect.get(target, property, receiver);
        },
      });
      const actual = lastActual(watched, opus);
      estimateContext({ messages: watched }, { counter: measured, calibration: emptyCalibration, actual });
      costs.push({ ...estimator.work, reads });
    }
    expect(costs[1]).toEqual(costs[0]);
    expect(costs[2]).toEqual(costs[0]);
    expect(costs[0]).toMatchObject({ slices: 8, characters: 8000, reads: 5 });
  });
});

describe("breakDown", () => {
  const parts = (breakdown: ContextBreakdown): number[] => Object.values(breakdown) as number[];
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const summary = { role: "compactionSummary", content: [{ type: "text", text: letters(100) }] };

  it("tells system, tools, summary, messages and tool results apart", () => {
    const request = {
      messages: [summary, user(letters(200)), result(letters(400))],
      system: letters(300),
      tools: [{ name: "r" }],
    };
    const { tokens } = estimateContext(request, { counter, calibration: emptyCalibration, actual: null });
    const breakdown = breakDown(request, { counter, calibration: emptyCalibration, totalTokens: tokens });
    expect(breakdown).toEqual({
      systemTokens: 330,
      toolsTokens: 562,
      summaryTokens: 125,
      messageTokens: 235,
      toolResultTokens: 455,
    });
    expect(sum(parts(breakdown))).toBe(tokens);
  });

  it("knows the classes of records too", () => {
    const messages = [
      { type: "compaction", id: "a", summary: letters(100), firstKeptEntryId: "b", tokensBefore: 1 },
      { seq: 2, type: "message", record: { type: "message", message: result(letters(100)) } },
    ];
    const breakdown = breakDown(
      { messages, system: null },
      { counter, calibration: emptyCalibration, totalTokens: 250 },
    );
    expect(breakdown).toMatchObject({ summaryTokens: 125, messageTokens: 0, toolResultTokens: 125 });
  });

  it("gives a system prompt it was not shown what the messages do not account for", () => {
    const breakdown = breakDown(
      { messages: [user(letters(100))] },
      { counter, calibration: emptyCalibration, totalTokens: 10_125 },
    );
    expect(breakdown).toMatchObject({ systemTokens: 10_000, messageTokens: 125 });
  });

  it("adds up exactly, whatever the total", () => {
    const texts = fc.array(fc.nat(2000), { maxLength: 6 });
    fc.assert(
      fc.property(
        fc.nat(2_000_000),
        texts,
        texts,
        fc.option(fc.nat(500), { nil: undefined }),
        (totalTokens, users, results, system) => {
          const messages = [
            summary,
            ...users.map((length) => user(letters(length))),
            ...results.map((length) => result(letters(length))),
          ];
          const request = { messages, ...(system === undefined ? {} : { system: letters(system) }) };
          const breakdown = parts(breakDown(request, { counter, calibration: emptyCalibration, totalTokens }));
          expect(sum(breakdown)).toBe(totalTokens);
          expect(breakdown.every((part) => Number.isSafeInteger(part) && part >= 0)).toBe(true);
        },
      ),
    );
  });
});
