import { describe, expect, it } from "vitest";
import {
  type ReadOptions,
  type RecordDraft,
  type RecordPage,
  sessionRef,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { readBounds } from "@throughline/store-kit/internal";
import { messageRole, readContextRecords } from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { walkBranch } from "../src/walk-branch.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { readTail } from "../src/read-tail.ts";
import { type RecordSelection, selectRecords, type TailSelection } from "../src/select-records.ts";

const roleOf = ({ record }: StoredRecord): string | null => messageRole(record);
const everything: RecordSelection = { isAll: false, isAllBranches: false, afterSeq: 0, role: null, tail: null };
const ref = sessionRef({ key: "agent:main:tail" });

/** Numbers that look random, the same each time. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

/** A log with branches, side records, compactions, ids that occur twice and parents that are nowhere. */
function oddLog(below: (count: number) => number, length: number): StoredRecord[] {
  const records: StoredRecord[] = [];
  for (let seq = 1; seq <= length; seq++) {
    const earlier = (): string => `r${1 + below(Math.max(1, seq - 1))}`;
    const id = below(15) === 0 && seq > 1 ? earlier() : `r${seq}`;
    const kind = below(12);
    const parentId = seq === 1 ? null : ([earlier(), "nowhere", null][below(30)] ?? `r${seq - 1}`);
    const base = { id, parentId, timestamp: "2026-01-02T03:04:05.000Z" };
    const record =
      kind === 0
        ? { ...base, type: "compaction", summary: "s", firstKeptEntryId: earlier(), tokensBefore: 1 }
        : kind === 1
          ? { ...base, type: "custom", customType: "note", data: {} }
          : { ...base, type: "message", message: { role: below(2) === 0 ? "user" : "bashExecution", content: "x" } };
    const facts = { seq, id, parentId, type: record.type, side: kind === 1, tsMs: 0, storedAtMs: 0, bytes: 1, crc: 0 };
    records.push({ ...facts, record } as StoredRecord);
  }
  return records;
}

/** A store that reads a log no store would have let in, a few records at a time, and counts how many it gave. */
function storeOf(log: readonly StoredRecord[]): { readonly store: SessionStore; given(): number } {
  let given = 0;
  async function* read(_ref: unknown, options: ReadOptions = {}): AsyncGenerator<RecordPage> {
    const { afterSeq, beforeSeq } = readBounds(options);
    const inRange = log.filter(({ seq }) => seq > afterSeq && seq < beforeSeq);
    if (options.order === "descending") inRange.reverse();
    for (let from = 0; from < inRange.length; from += 3) {
      const records = inRange.slice(from, from + 3);
      given += records.length;
      yield { records, lastSeq: log.at(-1)?.seq ?? 0 };
    }
  }
  return { store: { read } as unknown as SessionStore, given: () => given };
}

describe("the last records of a session", () => {
  it("are the last of what is shown without a limit, however odd the log is", { tags: ["slow"] }, async () => {
    let short = 0;
    for (let seed = 1; seed <= 3000; seed++) {
      const below = numbers(seed);
      const log = oddLog(below, 2 + below(40));
      const lastSeq = log.length;
      const headId = [null, "gone", log.at(-1)?.id ?? null, log[below(log.length)]?.id ?? null][below(4)] ?? null;
      const selection: TailSelection = {
        isAll: below(2) === 0,
        isAllBranches: below(4) === 0,
        afterSeq: below(3) === 0 ? below(log.length) : 0,
        role: below(3) === 0 ? "user" : null,
        tail: 1 + below(4),
      };
      const windowSeq = below(5) === 0 ? 1 + below(log.length) : null;
      const { store, given } = storeOf(log);
      const isWindow = !selection.isAll && !selection.isAllBranches;
      const shown = !isWindow
        ? log
        : windowSeq === null
          ? await readContextRecords(storeOf(log).store, ref, { headId, lastSeq })
          : log.slice(windowSeq - 1);
      const { path } = walkBranch(shown, headId);
      const isInOrder = path.every(({ seq }, index) => seq > (path[index - 1]?.seq ?? 0));
      // Where records are left out, a parent is not looked for behind its child.
      if (!isInOrder && (selection.afterSeq > 0 || shown.length < log.length)) continue;
      const query = { head: { headId, lastSeq, windowSeq }, selection, roleOf };
      const tail = await readTail(store, ref, query, AbortSignal.timeout(60_000));
      const expected = selectRecords(shown, headId, selection, roleOf);
      expect({ seed, tail: tail.map(({ seq }) => seq) }).toEqual({ seed, tail: expected.map(({ seq }) => seq) });
      if (given() < log.length / 2) short++;
    }
    expect(short).toBeGreaterThan(200);
  });

  it.each([
    ["a compaction lies behind nearly all of them", { boundaryAt: 5999, windowSeq: null, role: null }, 1000],
    ["the window that was stated is long", { boundaryAt: 10, windowSeq: 8, role: null }, 1000],
    ["no record has the role that is asked for", { boundaryAt: 0, windowSeq: null, role: "toolResult" }, 6000],
  ])("are read without keeping the others when %s", async (_when, { boundaryAt, windowSeq, role }, most) => {
    const log = Array.from({ length: 6000 }, (_, index): StoredRecord => {
      const seq = index + 1;
      const base = { id: `r${seq}`, parentId: seq === 1 ? null : `r${index}`, timestamp: "2026-01-02T03:04:05.000Z" };
      const record =
        seq === boundaryAt
          ? { ...base, type: "compaction", summary: "s", firstKeptEntryId: `r${seq - 2}`, tokensBefore: 1 }
          : { ...base, type: "message", message: { role: "user", content: "x" } };
      const facts = { seq, id: base.id, parentId: base.parentId, type: record.type, side: false };
      return { ...facts, tsMs: 0, storedAtMs: 0, bytes: 1, crc: 0, record } as StoredRecord;
    });
    const { store, given } = storeOf(log);
    const head = { headId: "r6000", lastSeq: 6000, windowSeq };
    const query = { head, selection: { ...everything, tail: 3, role }, roleOf };
    const tail = await readTail(store, ref, query, AbortSignal.timeout(60_000));
    expect(tail.map(({ seq }) => seq)).toEqual(role === null ? [5998, 5999, 6000] : []);
    expect(given()).toBeLessThanOrEqual(most);
  });

  it("take one page of a long session, and all of one whose branch left its end long ago", async () => {
    const store = createMemoryStore();
    await store.save(ref, { sessionId: "long" }, { ifRevision: null });
    const say = (content: string): RecordDraft => ({ type: "message", message: { role: "user", content } });
    for (let batch = 0; batch < 60; batch++)
      await store.append(
        ref,
        Array.from({ length: 100 }, (_, index) => say(`${batch * 100 + index}`)),
      );
    let read = 0;
    const counting: SessionStore = Object.create(store, {
      read: {
        value: async function* (...given: Parameters<SessionStore["read"]>) {
          for await (const page of store.read(...given)) {
            read += page.records.length;
            yield page;
          }
        },
      },
    }) as SessionStore;
    const last = async (): Promise<readonly number[]> => {
      const { head } = (await store.load(ref)) ?? expect.fail();
      read = 0;
      const query = { head, selection: { ...everything, tail: 2 }, roleOf };
      return (await readTail(counting, ref, query, AbortSignal.timeout(60_000))).map(({ seq }) => seq);
    };
    expect(await last()).toEqual([5999, 6000]);
    expect(read).toBeLessThanOrEqual(1000);
    const first: StoredRecord[] = [];
    for await (const page of store.read(ref, { limit: 3 })) first.push(...page.records);
    await store.append(ref, [], { rewindTo: first[2]?.id ?? "" });
    expect(await last()).toEqual([2, 3]);
    expect(read).toBe(6000);
  });
});

describe("the records of a context", () => {
  it("give the same messages as the whole log", { tags: ["slow"] }, async () => {
    let short = 0;
    for (let seed = 1; seed <= 3000; seed++) {
      const below = numbers(seed);
      const log = oddLog(below, 2 + below(40));
      const headId = [null, "gone", log.at(-1)?.id ?? null, log[below(log.length)]?.id ?? null][below(4)] ?? null;
      const records = await readContextRecords(storeOf(log).store, ref, { headId, lastSeq: log.length });
      const [whole, part] = [buildContext(log, { headId }), buildContext(records, { headId })];
      expect({ seed, messages: part.messages, summaryId: part.summaryId, headId: part.headId }).toEqual({
        seed,
        messages: whole.messages,
        summaryId: whole.summaryId,
        headId: whole.headId,
      });
      if (records.length < log.length) short++;
    }
    expect(short).toBeGreaterThan(150);
  });
});
