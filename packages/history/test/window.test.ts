import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { limitContext } from "../src/limit-context.ts";
import { truncateResults } from "../src/truncate-results.ts";
import { renderAnthropic } from "@throughline/history/anthropic";
import type { NeutralMessage } from "../src/neutral-message.ts";
import { assistant, call, compaction, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";
import { validLog } from "./random-logs.ts";
import { runs } from "./test-runs.ts";

const ids = ({ messages }: { readonly messages: readonly NeutralMessage[] }): string[] =>
  messages.map(({ recordId }) => recordId);
const turns = (count: number): RecordSketch[] =>
  Array.from({ length: count }, (_, turn) => [user(`ask ${turn}`), assistant([text(`answer ${turn}`)])]).flat();
const chars = (message: NeutralMessage): number => JSON.stringify(message.content).length;
const thinking = (value: string): Readonly<Record<string, unknown>> => ({
  type: "thinking",
  thinking: value,
  thinkingSignature: "s",
});

describe("limitContext", () => {
  it("leaves a context that fits as it is", () => {
    const context = buildContext(storedRecords(turns(2)));
    expect(limitContext(context, { maxMessages: 4 })).toEqual({ ...context, cut: null });
  });

  it("cuts before a user message, and says what it left out", () => {
    const limited = limitContext(buildContext(storedRecords(turns(4))), { maxMessages: 6 });
    expect(ids(limited)).toEqual(["r5", "r6", "r7", "r8"]);
    expect(limited.omitted).toEqual([{ fromSeq: 1, toSeq: 4, reason: "window" }]);
    expect([limited.cut, limited.recordsInContext]).toEqual([{ fromSeq: 5, metAtSeq: 7, requestSeq: null }, 4]);
  });

  it("keeps the summary, and the first request when asked", () => {
    const sketches = [...turns(2), compaction("r3"), ...turns(4)];
    const limited = limitContext(buildContext(storedRecords(sketches)), { maxMessages: 7, pinFirstRequest: true });
    expect(ids(limited).slice(0, 2)).toEqual(["r5", "r3"]);
    expect(limited.messages.length).toBeLessThanOrEqual(7);
    expect(limited.messages[2]?.role).toBe("user");
  });

  it("cuts inside a turn that is too large for the limit, before a reply, and keeps its request", () => {
    const steps = Array.from({ length: 6 }, (_, step) => [assistant([call(`t${step}`)]), result(`t${step}`)]).flat();
    const limited = limitContext(buildContext(storedRecords([...turns(1), user("do it all"), ...steps])), {
      maxMessages: 6,
    });
    expect(limited.messages[0]?.recordId).toBe("r3");
    expect(limited.messages[1]?.role).toBe("assistant");
    expect(limited.messages.length).toBeLessThanOrEqual(6);
    expect(renderAnthropic(limited).repairs).toEqual([]);
  });

  it("counts tokens by the function it is given, once for each message", () => {
    const context = buildContext(storedRecords(turns(50)));
    const counted: string[] = [];
    const countTokens = (message: NeutralMessage): number => {
      counted.push(message.recordId);
      return chars(message);
    };
    const limited = limitContext(context, { maxTokens: 800, countTokens });
    expect(counted).toEqual(ids(context));
    expect(limited.messages.reduce((sum, message) => sum + chars(message), 0)).toBeLessThanOrEqual(800);
    expect(limited.messages.length).toBeGreaterThan(4);
  });

  it("never gives more than the limit, but for a request with one step", () => {
    fc.assert(
      fc.property(validLog, fc.integer({ min: 6, max: 12 }), fc.boolean(), (records, maxMessages, pinFirstRequest) => {
        const limited = limitContext(buildContext(records), { maxMessages, pinFirstRequest });
        expect(limited.messages.length).toBeLessThanOrEqual(maxMessages);
        const { rule } = renderAnthropic(limited).repairs.find((repair) => repair.rule !== "user-merged") ?? {};
        expect(rule).toBe(limited.messages.at(-1)?.role === "assistant" ? "continuation-added" : undefined);
      }),
      runs(250),
    );
  });

  it("unbinds the thinking of what was written with another beginning", () => {
    const target = { provider: "anthropic", modelId: "claude-sonnet-4-5" };
    const reply = (turn: number): RecordSketch => assistant([thinking(`t${turn}`), text(`answer ${turn}`)]);
    const sketches = Array.from({ length: 5 }, (_, turn) => [user(`ask ${turn}`), reply(turn)]).flat();
    const limited = limitContext(buildContext(storedRecords(sketches)), { maxMessages: 6 });
    expect(limited.cut).toEqual({ fromSeq: 5, metAtSeq: 7, requestSeq: null });
    const { repairs } = renderAnthropic(limited, { target });
    expect(repairs.map(({ rule, recordId }) => `${rule} ${recordId}`)).toEqual(["thinking-removed r6"]);
  });
});

describe("truncateResults", () => {
  const long = `${"a".repeat(60)}${"z".repeat(60)}`;
  const log = storedRecords([
    user("hi"),
    assistant([call("t1")]),
    result("t1", long),
    assistant([thinking("hm"), text("a")]),
  ]);

  it("shortens in the middle and says by how much", () => {
    const { messages, truncations } = truncateResults(buildContext(log), { maxChars: 20 });
    const shortened = `${"a".repeat(12)}\n[… 100 characters left out …]\n${"z".repeat(8)}`;
    expect(messages[2]?.content).toEqual([{ type: "text", text: shortened }]);
    expect(truncations).toEqual([{ recordId: "r3", headChars: 12, tailChars: 8, sentToSeq: null }]);
  });

  it("shortens a recorded one as it was recorded, whatever the limit is", () => {
    const first = truncateResults(buildContext(log), { maxChars: 20 });
    for (const maxChars of [5, 50, 500]) {
      const again = truncateResults(buildContext(log), { maxChars, recorded: first.truncations });
      expect(again.messages).toEqual(first.messages);
      expect(again.truncations).toEqual(first.truncations);
    }
  });

  it("unbinds later thinking when the whole result had been sent", () => {
    const context = buildContext(log);
    const unsent = truncateResults(context, { maxChars: 20 });
    const sent = truncateResults(context, { maxChars: 20, sentToSeq: 4 });
    expect(unsent.messages.map(({ isPrefixChanged }) => isPrefixChanged)).toEqual([false, false, false, false]);
    expect(sent.messages.map(({ isPrefixChanged }) => isPrefixChanged)).toEqual([false, false, false, true]);
    expect(sent.truncations[0]?.sentToSeq).toBe(4);
    expect(truncateResults(context, { recorded: sent.truncations }).messages).toEqual(sent.messages);
  });

  it("leaves short results and images alone", () => {
    const image = { type: "image", data: "aWs=", mimeType: "image/png" };
    const context = buildContext(
      storedRecords([user("hi"), assistant([call("t1")]), result("t1", [image, text(long)])]),
    );
    expect(truncateResults(context, { maxChars: 120 }).messages).toEqual(context.messages);
    expect(truncateResults(context, { maxChars: 10 }).messages[2]?.content.map(({ type }) => type)).toEqual([
      "text",
      "image",
    ]);
  });
});
