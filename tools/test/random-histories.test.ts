import { describe, expect, it } from "vitest";
import { maxEntryBytes } from "../../packages/core/src/entry-bounds.ts";
import type { SessionStore } from "../../packages/core/src/index.ts";
import { historyStores, type HistoryStore } from "../histories/history-store.ts";
import type { History } from "../histories/history-steps.ts";
import { playHistory } from "../histories/play-history.ts";
import { randomHistory } from "../histories/random-steps.ts";
import { randomHistories } from "../random-histories.ts";
import { testSize } from "../test-size.ts";

/** The real store, and of what it is given something never reaches it. */
function losing(lose: (given: Parameters<SessionStore["append"]>) => Parameters<SessionStore["append"]>): HistoryStore {
  const { memory } = historyStores;
  return {
    ...memory,
    open(place, derivedDelayMs) {
      const store = memory.open(place, derivedDelayMs);
      const append = store.append.bind(store);
      return Object.assign(store, {
        append: (...given: Parameters<SessionStore["append"]>) => append(...lose(given)),
      });
    },
  };
}

describe("random histories of several handles on one store", () => {
  const { memory, jsonl, sqlite } = historyStores;
  it.each([
    ["memory", { store: memory }],
    ["SQLite", { store: sqlite }],
    ["JSON Lines", { store: jsonl }],
    ["JSON Lines, derived files lost and stale", { store: jsonl, withDamage: true }],
    ["JSON Lines, other programs before it", { store: jsonl, withForeign: true }],
    ["JSON Lines, both", { store: jsonl, withDamage: true, withForeign: true }],
  ])("leave what the model says: %s", { tags: ["slow"] }, async (_name, plan) => {
    const played = await randomHistories({
      ...plan,
      histories: testSize({ short: 5, long: 100 }),
      firstSeed: 1,
      steps: 50,
      handles: 3,
      shrinkMs: 0,
    });
    expect(played.problems).toEqual([]);
    // About 150 comparisons a history: one that ends early would show here.
    expect(played.comparisons).toBeGreaterThan(testSize({ short: 500, long: 10_000 }));
  });

  const session = { key: 1 };

  /** What is wrong with a store once a session was saved and the steps were played. */
  async function problemOf(store: HistoryStore, steps: History["steps"]): Promise<unknown> {
    const entry = { set: {}, unset: [] };
    const save = { kind: "save", handle: 0, session, sessionId: "s1", revision: "known", entry } as const;
    const handle = { handles: 1, pageRecords: 100, pageBytes: 1_000_000, derivedDelaysMs: [0] };
    return (await playHistory({ seed: 1, ...handle, steps: [save, ...steps] }, store)).problem;
  }

  it.each(Object.values(historyStores))(
    "leaves a compaction that is redacted twice as it was: $name",
    async (store) => {
      const drafts = [{ form: "fields", type: "compaction", fields: {} }] as const;
      const redact = { kind: "redact", handle: 0, session, records: [0], withUnknown: false } as const;
      const steps = [{ kind: "append", handle: 0, reader: 0, session, drafts }, redact, redact] as const;
      expect(await problemOf(store, steps)).toBeNull();
    },
  );

  it("never set the clock back so far that the line of another program is not believed any more", async () => {
    const line = { kind: "foreign line", session, line: "message", text: "theirs", aheadMs: 100_000 } as const;
    const read = { kind: "read", handle: 0, session, options: {} } as const;
    const back = { kind: "clock", byMs: -250_000 } as const;
    expect(await problemOf(jsonl, [line, read, back])).toBeNull();
  });

  it("save and patch no more than an entry may hold", () => {
    const { steps } = randomHistory({ seed: 510247, steps: 80, handles: 3 });
    const entries = steps.flatMap((step) => ("entry" in step && step.entry !== undefined ? [step.entry.set] : []));
    expect(Buffer.byteLength(JSON.stringify(entries))).toBeLessThan(maxEntryBytes);
  });

  it.each<readonly [string, RegExp, HistoryStore]>([
    [
      "a record",
      /^step \d+ \(append\)/,
      losing(([ref, drafts, options]) => [ref, drafts.length > 3 ? drafts.slice(0, -1) : drafts, options]),
    ],
    [
      "a field of an entry",
      /^step \d+ \(append\).*: the state of/,
      losing(([ref, drafts, { entry, ...options } = {}]) => {
        const { channel: _lost, ...kept } = entry ?? {};
        return [ref, drafts, entry === undefined ? options : { ...options, entry: kept }];
      }),
    ],
    [
      "a field of a record",
      /, record \d+\n/,
      losing(([ref, drafts, options]) => [
        ref,
        drafts.map(
          ({ extra: _lost, ...kept }: { extra?: unknown } & (typeof drafts)[number]) => kept as (typeof drafts)[number],
        ),
        options,
      ]),
    ],
  ])("show that a store loses %s, in a few steps", async (_name, sign, store) => {
    const options = { histories: 12, firstSeed: 1, steps: 50, handles: 3, maxProblems: 1 };
    const [problem] = (await randomHistories({ ...options, store })).problems;
    expect(problem?.shrunk.steps.length).toBeLessThan(5);
    expect(problem?.message).toMatch(sign);
  });
});
