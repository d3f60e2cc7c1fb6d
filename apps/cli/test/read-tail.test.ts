import { describe, expect, it } from "vitest";
import { sessionRef, type RecordDraft, type SessionStore, type StoredRecord } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { readTail } from "../src/read-tail.ts";
import { selectRecords, selectTail, type RecordSelection, type TailSelection } from "../src/select-records.ts";
import { messageRole } from "../src/record-text.ts";

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
    records.push({ ...facts, record } as unknown as StoredRecord);
  }
  return records;
}

describe("the last records of a session", () => {
  it("are those of the whole log, or the end of it does not say", () => {
    let said = 0;
    for (let seed = 1; seed <= 400; seed++) {
      const below = numbers(seed);
      const log = oddLog(below, 2 + below(30));
      const headId = [null, "gone", log.at(-1)?.id ?? null, log[below(log.length)]?.id ?? null][below(4)] ?? null;
      const selection: TailSelection = {
        isAll: below(2) === 0,
        isAllBranches: below(4) === 0,
        afterSeq: below(3) === 0 ? below(log.length) : 0,
        role: below(3) === 0 ? "user" : null,
        tail: 1 + below(4),
      };
      const whole = selectRecords(log, headId, selection, roleOf);
      for (let from = 1; from < log.length; from++) {
        const tail = selectTail(log.slice(from), headId, selection, roleOf);
        if (tail === null) continue;
        said++;
        expect({ seed, from, tail: tail.map(({ seq }) => seq) }).toEqual({
          seed,
          from,
          tail: whole.map(({ seq }) => seq),
        });
      }
    }
    expect(said).toBeGreaterThan(1000);
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
