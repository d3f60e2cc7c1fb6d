import { describe, expect, it } from "vitest";
import { buildContext } from "@throughline/history";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import type { Context } from "@throughline/history";
import { assistant, call, compaction, result, storedRecords, text, user, type RecordSketch } from "./stored-records.ts";

const checkpoint = (summary: string, coversToId?: string): RecordSketch => ({
  type: "checkpoint",
  checkpoint: { summary, tokensAtCheckpoint: 900, messageCountAtCheckpoint: 3, ...(coversToId ? { coversToId } : {}) },
});
const ids = ({ messages }: Context): string[] => messages.map(({ recordId }) => recordId);
const talk = [user("one"), assistant([text("a")]), user("two"), assistant([text("b")])];

describe("a session taken over with its checkpoints", () => {
  it("has the newest checkpoint in place of what it covers, when asked", () => {
    const records = storedRecords([...talk, checkpoint("old", "r1"), checkpoint("new", "r2"), user("three")]);
    const context = buildContext(records, { fromCheckpoint: true });
    expect(ids(context)).toEqual(["r6", "r3", "r4", "r7"]);
    expect(context.messages[0]).toMatchObject({ role: "compactionSummary", tokensBefore: 900 });
    expect([context.summaryId, context.omitted]).toEqual(["r6", [{ fromSeq: 1, toSeq: 2, reason: "summarized" }]]);
    expect(ids(buildContext(records))).toEqual(["r1", "r2", "r3", "r4", "r7"]);
  });

  it("covers all before it where it says nothing else, and keeps calls with their results", () => {
    const records = storedRecords([user("one"), assistant([call("t1")]), checkpoint("so far"), result("t1")]);
    const context = buildContext(records, { fromCheckpoint: true });
    expect(ids(context)).toEqual(["r3", "r2", "r4"]);
    const { messages, repairs } = renderAnthropic(context);
    expect([validateAnthropic(messages), repairs]).toEqual([[], []]);
  });

  it("is passed over for a compaction that covers more, when it is empty, and on another branch", () => {
    const later = storedRecords([...talk, checkpoint("so far", "r2"), compaction("r4"), user("three")]);
    expect(buildContext(later, { fromCheckpoint: true })).toEqual(buildContext(later));
    const empty = storedRecords([...talk, checkpoint(" ")]);
    expect(buildContext(empty, { fromCheckpoint: true })).toEqual(buildContext(empty));
    const elsewhere = storedRecords([...talk, checkpoint("so far", "r4"), user("other", { parentId: "r2" })]);
    expect(buildContext(elsewhere, { fromCheckpoint: true })).toEqual(buildContext(elsewhere));
  });
});
