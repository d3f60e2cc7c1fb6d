import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSideRecord } from "@throughline/core/internal";
import type { RecordDraft, SessionRecord, StoredRecord } from "@throughline/core";
import { buildContext } from "@throughline/history";
import type { NeutralMessage } from "@throughline/history/internal";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import { type CompactionInput, type CompactionPlan, planCompaction } from "../src/plan-compaction.ts";
import { settingsForWindow } from "../src/compaction-settings.ts";
import { assistant, call, result, turns, user } from "./compaction-fixture.ts";

function stored(drafts: readonly RecordDraft[]): StoredRecord[] {
  let head: string | null = null;
  return drafts.map((draft, index) => {
    const id = draft.id ?? `r${index + 1}`;
    const record = { parentId: head, timestamp: "2026-03-01T00:00:00.000Z", ...draft, id } as SessionRecord;
    const side = isSideRecord(record);
    if (!side) head = id;
    const bytes = JSON.stringify(record).length;
    return {
      seq: index + 1,
      id,
      parentId: record.parentId,
      type: record.type,
      side,
      tsMs: 0,
      storedAtMs: 0,
      bytes,
      crc: null,
      record,
    };
  });
}

/** A token for four characters: what a test can follow. */
const countMessage = (message: NeutralMessage): number => Math.ceil(JSON.stringify(message.content).length / 4);

function plan(
  drafts: readonly RecordDraft[],
  windowTokens: number,
  more: Partial<CompactionInput> = {},
): ReturnType<typeof planCompaction> {
  const settings = settingsForWindow({}, windowTokens);
  return planCompaction({ records: stored(drafts), totalTokens: null, countMessage, settings, ...more });
}

function planned(...args: Parameters<typeof plan>): CompactionPlan {
  const made = plan(...args);
  if (made.kind === "nothing") throw new Error(made.reason);
  return made;
}

describe("the plan of a compaction", () => {
  it("removes the older part and says from where on the rest stays", () => {
    const made = planned(turns(100), 200_000);
    expect(made).toMatchObject({ removedFromSeq: 1, mode: "normal", previous: null, splitRequest: null });
    expect(made.removedMessages + made.keptMessages).toBe(400);
    expect(made.removed).toHaveLength(made.removedMessages);
    expect(made.firstKeptId).toBe(`r${made.removedToSeq + 1}`);
    expect(made.windowFromSeq).toBe(made.removedToSeq + 1);
    expect(made.keptMessages).toBeGreaterThanOrEqual(40);
  });

  it("keeps a tenth, in an emergency a fifth, and at least twenty messages", () => {
    const few = { keepRecentTokens: 100 };
    const kept = (count: number, mode: "normal" | "emergency"): number =>
      planned(turns(count), 2_000_000, { mode, settings: settingsForWindow(few, 2_000_000) }).keptMessages;
    expect(kept(100, "normal")).toBe(40);
    expect(kept(100, "emergency")).toBe(80);
    expect(kept(25, "normal")).toBe(20);
  });

  it("lets tokens win over counts of messages [CMP-03, C27]", () => {
    const large = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? user : assistant)("word ".repeat(300)));
    const made = planned(large, 8000);
    expect(made.keptTokens).toBeLessThanOrEqual(8000 / 4);
    expect(made.keptMessages).toBeLessThan(20);
  });

  it("never cuts between a call and its result, and moves towards the end when it must", () => {
    const calls = Array.from({ length: 30 }, (_, index) => call(`c${index}`, "read", { path: `f${index}.ts` }));
    const results = calls.map((_, index) => result(`c${index}`, "x".repeat(400)));
    const one = [
      user("read them all"),
      assistant("reading", calls),
      ...results,
      assistant("done"),
      user("go on"),
      assistant("yes"),
    ];
    const made = planned(one, 8000);
    expect(made.firstKeptId).toBe("r33");
    expect(made.splitRequest?.recordId).toBe("r1");
    const allOne = [user("read"), assistant("reading", calls), ...results];
    expect(plan(allOne, 8000)).toMatchObject({ kind: "nothing", reason: "no-gain" });
  });

  it("finds a place although a result comes only at the very end", () => {
    const late = [
      user("one"),
      assistant("calling", [call("late", "read", {})]),
      ...turns(20),
      result("late", "at last"),
    ];
    expect(planned(late, 8000).removedMessages).toBeGreaterThan(20);
  });

  it("refuses four messages and fewer, and what is no longer than its summary", () => {
    expect(plan(turns(1), 8000)).toMatchObject({ kind: "nothing", reason: "too-few-messages" });
    expect(plan([], 8000)).toMatchObject({ kind: "nothing", reason: "too-few-messages" });
    const short = ["a", "b", "c", "d", "e", "f"].map((text) => user(text));
    expect(plan(short, 200_000)).toMatchObject({ kind: "nothing", reason: "no-gain" });
  });

  it("carries the summary before it on, and summarizes what that one had kept", () => {
    const first = turns(20);
    const compaction = { type: "compaction", summary: "They began.", firstKeptEntryId: "r61", tokensBefore: 9000 };
    const made = planned([...first, compaction, ...turns(40, 20)], 8000);
    expect(made.previous).toMatchObject({ id: "r81", prose: "They began.", details: null });
    expect(made.removed[0]?.recordId).toBe("r61");
    expect(made.replacedTokens).toBeGreaterThan(made.previous?.tokens ?? 0);
  });

  it("leaves messages of a flush out of what is summarized", () => {
    const flush = user("store what matters", { source: "flush" });
    const drafts = turns(30);
    drafts.splice(8, 0, flush, assistant("NO_REPLY"));
    drafts.splice(14, 0, flush, assistant("Stored it under NO_REPLY."));
    const made = planned(drafts, 8000);
    const ids = made.removed.map(({ recordId }) => recordId);
    expect(["r9", "r10", "r15", "r16"].map((id) => ids.includes(id))).toEqual([false, false, false, true]);
    expect(made.removedMessages).toBe(made.removed.length + 3);
  });

  it("keeps everything behind what a checkpoint covers, and as much as behind any other summary", () => {
    const settings = settingsForWindow({ keepRecentTokens: 0, minMessages: 0, keepPercent: 1 }, 32_000);
    const covered = (coversToId: string) => planned(turns(40), 32_000, { coversToId, settings });
    expect(covered("r100")).toMatchObject({ firstKeptId: "r101" });
    expect(covered("r98")).toMatchObject({ firstKeptId: "r98" });
    expect(covered("r160")).toMatchObject({ keptMessages: 3 });
    expect(planned(turns(40), 32_000, { coversToId: "r160" })).toMatchObject({
      firstKeptId: planned(turns(40), 32_000).firstKeptId,
    });
    expect(plan(turns(40), 32_000, { coversToId: "r999" })).toMatchObject({ kind: "nothing", reason: "not-covered" });
    expect(plan(turns(40), 4000, { coversToId: "r4" })).toMatchObject({ kind: "nothing", reason: "no-gain" });
  });

  it("believes the measured size of the request where the messages are counted larger", () => {
    const whole = planned(turns(100), 32_000);
    const half = Math.round(whole.tokensBefore / 2);
    const made = planned(turns(100), 32_000, { totalTokens: half });
    expect(made).toMatchObject({ tokensBefore: half, firstKeptId: whole.firstKeptId });
    expect(Math.abs(made.keptTokens + made.replacedTokens - half)).toBeLessThanOrEqual(1);
    expect(planned(turns(100), 32_000, { totalTokens: 15 }).tokensBefore).toBe(whole.tokensBefore);
    const larger = planned(turns(100), 32_000, { totalTokens: whole.tokensBefore + 500 });
    expect(larger).toMatchObject({ tokensBefore: whole.tokensBefore + 500, replacedTokens: whole.replacedTokens });
  });
});

/** Conversations of any shape: calls without results, results without calls, runs of one role. */
const conversation: fc.Arbitrary<RecordDraft[]> = fc
  .array(
    fc.tuple(
      fc.constantFrom("user", "reply", "calls", "result", "stray"),
      fc.integer({ min: 0, max: 3000 }),
      fc.nat(5),
    ),
    { minLength: 5, maxLength: 80 },
  )
  .map((parts) =>
    parts.map(([kind, length, id]) => {
      const text = "word ".repeat(length / 5);
      if (kind === "user") return user(text);
      if (kind === "reply") return assistant(text);
      if (kind === "calls") return assistant(text, [call(`c${id}`, "read", {}), call(`d${id}`, "read", {})]);
      return result(kind === "result" ? `c${id}` : `d${id}`, text);
    }),
  );

describe("any plan", () => {
  it("removes something, keeps something, loses nothing, and parts no call from its result of the same turn", () => {
    fc.assert(
      fc.property(conversation, fc.constantFrom(4000, 16_000, 200_000), (drafts, window) => {
        const made = plan(drafts, window);
        if (made.kind === "nothing") return;
        const { messages } = buildContext(stored(drafts));
        const cut = messages.findIndex(({ recordId }) => recordId === made.firstKeptId);
        expect(cut).toBeGreaterThan(0);
        expect(made.removed.map(({ recordId }) => recordId)).toEqual(
          messages.slice(0, cut).map(({ recordId }) => recordId),
        );
        expect(["user", "assistant"]).toContain(messages[cut]?.role);
        expect(made.replacedTokens).toBeGreaterThan(0);
        const compacted = [
          ...drafts,
          { type: "compaction", summary: "before", firstKeptEntryId: made.firstKeptId, tokensBefore: 1 },
        ];
        const { messages: sent } = renderAnthropic(buildContext(stored(compacted)));
        expect(validateAnthropic(sent)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it("is the same whether the whole log is given or the window", () => {
    fc.assert(
      fc.property(fc.integer({ min: 12, max: 60 }), (count) => {
        const compaction = { type: "compaction", summary: "They began.", firstKeptEntryId: "r9", tokensBefore: 9000 };
        const records = stored([...turns(4), compaction, ...turns(count, 4)]);
        const settings = settingsForWindow({}, 8000);
        const [whole, window] = [records, records.slice(8)].map((given) =>
          planCompaction({ records: given, totalTokens: null, countMessage, settings }),
        );
        expect(window).toEqual(whole);
      }),
    );
  });
});
