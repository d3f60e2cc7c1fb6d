import { describe, expect, it } from "vitest";
import type { StoredRecord } from "@throughline/core";
import { redactionTombstone, runSteps } from "@throughline/core/internal";
import { type DigestView, SessionDigest } from "@throughline/transcript-view/internal";

const minuteMs = 60_000;

interface Given {
  readonly id?: string;
  readonly parent?: string | null;
  readonly atMs?: number | null;
  readonly side?: boolean;
  readonly record: { readonly type: string; readonly [field: string]: unknown };
}

/** Numbers the records, each below the one before unless it names another. */
function stored(given: readonly Given[]): readonly StoredRecord[] {
  return given.map(({ id, parent, atMs, side = false, record }, index) => {
    const seq = index + 1;
    const tsMs = atMs === undefined ? seq * minuteMs : atMs;
    const parentId = parent === undefined ? (index === 0 ? null : (given[index - 1]?.id ?? `r${index}`)) : parent;
    return {
      seq,
      id: id ?? `r${seq}`,
      parentId,
      type: record.type,
      side,
      tsMs,
      storedAtMs: null,
      bytes: 1,
      crc: null,
      record,
    } as StoredRecord;
  });
}

const message = (role: string, content: unknown, more: object = {}): Given["record"] => ({
  type: "message",
  message: { role, content, ...more },
});
const user = (text: string): Given["record"] => message("user", text);
const call = (name: string, args: object, id = "t1"): object => ({ type: "toolCall", id, name, arguments: args });
const usage = (input: number, output: number): object => ({ usage: { input, output, totalTokens: input + output } });

function digestOf(records: readonly StoredRecord[], headId = records.at(-1)?.id ?? null): DigestView {
  const digest = new SessionDigest({ promptText: (text) => text.trim() });
  for (const record of records) digest.take(record);
  return runSteps(digest.view(headId));
}

const turn: readonly Given[] = [
  { record: user("  Fix the login\nplease") },
  {
    record: message(
      "assistant",
      [call("edit", { path: "a", old_text: "x", new_text: "y" }), call("edit", { path: "a" }, "t2")],
      usage(100, 7),
    ),
  },
  { record: message("toolResult", "no", { toolCallId: "t1", isError: true }) },
  { record: message("assistant", "Done.", usage(200, 3)) },
  { record: { type: "compaction", summary: "s", tokensBefore: 200, tokensAfter: 20, details: { source: "model" } } },
  {
    side: true,
    record: { type: "custom", customType: "throughline.call", data: { changes: [{ kind: "shortened" }] } },
  },
  { record: user("Now the tests") },
];

describe("a digest", () => {
  it("has prompts with what followed, errors, compactions and shortened calls", () => {
    const { prompts, errors, shortened, compactions, branches } = digestOf(stored(turn));
    expect(prompts).toEqual([
      { seq: 1, toSeq: 6, tsMs: minuteMs, text: "Fix the login…", tools: 2, errors: 1, files: 1, outputTokens: 10 },
      { seq: 7, toSeq: 7, tsMs: 7 * minuteMs, text: "Now the tests", tools: 0, errors: 0, files: 0, outputTokens: 0 },
    ]);
    expect([errors, shortened, branches]).toEqual([[3], [6], []]);
    expect(compactions).toEqual([{ seq: 5, tokensBefore: 200, tokensAfter: 20, source: "model" }]);
  });

  it("goes on where it was, and shows the same as at once", () => {
    const records = stored([...turn, ...turn.map((each) => ({ ...each }))]);
    const grown = new SessionDigest({ promptText: (text) => text.trim() });
    for (const record of records) {
      grown.take(record);
      expect(runSteps(grown.view(record.id))).toEqual(digestOf(records.slice(0, record.seq), record.id));
    }
  });

  it("leaves out branches beside the way to the head, and counts them; a rewind only walks again", () => {
    const records = stored([
      { id: "p1", record: user("one") },
      { id: "a1", record: message("assistant", [call("write", { path: "f", content: "x" })], usage(1, 5)) },
      { id: "p2", record: user("two") },
      { id: "a2", parent: "p1", record: message("assistant", "again", usage(1, 9)) },
      { id: "p3", parent: "a2", record: user("three") },
    ]);
    const now = digestOf(records);
    expect(now.prompts.map(({ text, outputTokens, files }) => [text, outputTokens, files])).toEqual([
      ["one", 9, 0],
      ["three", 0, 0],
    ]);
    expect(now.branches).toEqual([{ seq: 2, records: 2 }]);
    const back = digestOf(records, "p2");
    expect(back.prompts.map(({ text, outputTokens, files }) => [text, outputTokens, files])).toEqual([
      ["one", 5, 1],
      ["two", 0, 0],
    ]);
    expect(back.branches).toEqual([{ seq: 4, records: 2 }]);
    const empty = digestOf(records, null);
    expect([empty.prompts, empty.branches, empty.axis]).toEqual([[], [{ seq: 1, records: 5 }], null]);
  });

  it("counts every record of a log whose parents are missing, come later, or go in circles", () => {
    for (const parents of [
      ["gone", "r1", "r2"],
      ["r3", "r1", "r2"],
      ["r1", "r1", "r2"],
      ["r2", "r1", "r1"],
    ]) {
      const records = stored(parents.map((parent, index) => ({ parent, record: user(`prompt ${index}`) })));
      expect([parents, digestOf(records).prompts.length]).toEqual([parents, 3]);
    }
  });

  it("names redactions and edits, which a head does not tell from other records of programs", () => {
    const own = (kind: string, data: object): Given["record"] => ({
      type: "custom",
      customType: `throughline.${kind}`,
      data,
    });
    const redacted = redactionTombstone(
      { type: "message", id: "r1", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" },
      { reason: "r", redactedAtMs: 1, bytes: 9, side: false },
    );
    const records = stored([
      { record: redacted },
      { record: own("edit", { targetId: "r1" }) },
      { record: own("call", {}) },
      { side: true, record: own("edit", { targetId: "r1" }) },
    ]);
    expect(digestOf(records).marks).toEqual([1, 2]);
  });

  it("takes records of any shape", () => {
    const shapes = [null, 5, "x", [], { role: "assistant", content: [null, 1, { type: "toolCall" }], usage: "many" }];
    const records = [
      ...shapes.map((value): Given => ({ atMs: null, record: { type: "message", message: value } })),
      { atMs: Number.NaN, record: { type: "compaction", tokensBefore: "5", details: null } },
      { atMs: 1e300, record: { type: "usage", usage: { input: -1 } } },
      { atMs: 0, record: { type: "custom", customType: "throughline.call", data: "x" } },
    ];
    const { prompts, compactions, axis } = digestOf(stored(records));
    expect(prompts).toEqual([]);
    expect(compactions).toEqual([{ seq: 6, tokensBefore: null, tokensAfter: null, source: null }]);
    expect(axis).toBe(null);
  });
});

describe("the time axis of a digest", () => {
  it("has a bucket for what happened, and none for a pause", () => {
    const { axis } = digestOf(
      stored([
        { atMs: 0, record: user("a") },
        { atMs: 1500, record: message("assistant", "b", usage(10, 5)) },
        { atMs: 3_600_000, record: user("c") },
        { atMs: 3_500_000, record: message("assistant", "d", usage(20, 6)) },
      ]),
    );
    expect(axis).toMatchObject({ fromMs: 0, toMs: 3_600_000 });
    expect(
      axis?.buckets.map(({ fromMs, prompts, replies, tokens, fillTokens }) => [
        fromMs,
        prompts,
        replies,
        tokens,
        fillTokens,
      ]),
    ).toEqual([
      [0, 1, 0, 0, null],
      [1000, 0, 1, 5, 15],
      [3_600_000, 1, 1, 6, 26],
    ]);
  });

  it("never has more than 600 buckets, and loses no record", () => {
    for (const stepMs of [61_000, 301_000]) {
      const records = stored(Array.from({ length: 1500 }, (_, at) => ({ atMs: at * stepMs, record: user(`${at}`) })));
      const { axis } = digestOf(records);
      const buckets = axis?.buckets ?? [];
      expect([stepMs, buckets.length <= 600]).toEqual([stepMs, true]);
      expect(buckets.reduce((sum, { prompts }) => sum + prompts, 0)).toBe(1500);
      expect(buckets.every(({ fromMs }, index) => index === 0 || fromMs >= (buckets[index - 1]?.toMs ?? 0))).toBe(true);
    }
  });
});
