import { describe, expect, it } from "vitest";
import {
  openSession,
  readWindow,
  type RecordDraft,
  redactRecords,
  sessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { resetSession, updateEntry } from "../src/open-session.ts";
import { forkByCopy } from "../src/fork-session.ts";
import { throughlineDraft } from "../src/throughline-record.ts";
import { withheldSummary } from "../src/summary-parts.ts";

import { systemRandom } from "../src/node/system-ports.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { aroundCalls, replaceMembers } from "@throughline/test-kit";

const ref = sessionRef({ key: "agent:main:cli:direct:test" });
const random = systemRandom;
const user = (text: string) => ({ type: "message", message: { role: "user", content: text } });

async function readAll(store: SessionStore, address = ref): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(address)) records.push(...page.records);
  return records;
}

/** A store whose disk goes away when something is redacted. */
function failingRedact(store: SessionStore): SessionStore {
  return replaceMembers(store, { redact: () => Promise.reject(new Error("the disk is gone")) });
}

describe("openSession", () => {
  it("creates once, with its label, and loads afterwards; load alone creates nothing [STO-04 C15 KEY-12]", async () => {
    const store = createMemoryStore();
    expect(await store.load(ref)).toBeNull();
    const first = await openSession(store, ref, { random, entry: { label: "my-project" } });
    const second = await openSession(store, ref, { random });
    expect(first.isNew).toBe(true);
    expect(second.isNew).toBe(false);
    expect(second.state.sessionId).toBe(first.state.sessionId);
    expect(second.state.entry.label).toBe("my-project");
  });

  it("gives two callers at once the same session", async () => {
    const store = createMemoryStore();
    const opened = await Promise.all(Array.from({ length: 20 }, () => openSession(store, ref, { random })));
    expect(new Set(opened.map(({ state }) => state.sessionId)).size).toBe(1);
    expect(opened.filter(({ isNew }) => isNew)).toHaveLength(1);
  });
});

describe("updateEntry", () => {
  it("loses no change among many writers", async () => {
    const store = createMemoryStore();
    await openSession(store, ref, { random });
    const count = (entry: { readonly [field: string]: unknown }) => Number(entry["count"] ?? 0);
    await Promise.all(
      Array.from({ length: 30 }, () => updateEntry(store, ref, (entry) => ({ ...entry, count: count(entry) + 1 }))),
    );
    expect(count((await store.load(ref))!.entry)).toBe(30);
  });

  it("writes nothing when nothing changes, and says when there is no session", async () => {
    const store = createMemoryStore();
    await expect(updateEntry(store, ref, (entry) => entry)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    const { state } = await openSession(store, ref, { random });
    expect((await updateEntry(store, ref, (entry) => entry)).revision).toBe(state.revision);
  });
});

describe("resetSession", () => {
  it("begins anew under the key, archives the old session and remembers its id", async () => {
    const store = createMemoryStore();
    const { state: old } = await openSession(store, ref, { random, entry: { label: "keep me" } });
    await store.append(ref, [user("before")]);
    const fresh = await resetSession(store, ref, { random, keep: (entry) => ({ label: entry.label }) });
    expect(fresh.sessionId).not.toBe(old.sessionId);
    expect(fresh.head.lastSeq).toBe(0);
    expect(fresh.entry).toMatchObject({ label: "keep me", previousSessionIds: [old.sessionId] });
    const archived = await readAll(store, { ...ref, archiveId: old.sessionId });
    expect(archived.map(({ record }) => (record["message"] as { content: string }).content)).toEqual(["before"]);
  });
});

describe("forkByCopy", () => {
  it("copies seq, ids and lines up to the seq asked for, and goes on alone", async () => {
    const store = createMemoryStore();
    await openSession(store, ref, { random });
    const source =
      '{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-01T16:10:50.414Z","message":{"role":"user","content":"x"},"n":1.0}';
    await store.append(ref, [{ source }, user("two"), user("three")]);
    const target = sessionRef({ key: "agent:main:cli:direct:fork" });
    const forked = await forkByCopy({ store, ref }, { store, ref: target }, { sessionId: random.uuid(), atSeq: 2 });
    expect(forked.head).toMatchObject({ lastSeq: 2 });
    expect(forked.entry["forkedFrom"]).toMatchObject({ key: ref.key, atSeq: 2 });
    expect(forked.entry).not.toHaveProperty("forkIncomplete");
    await store.append(target, [user("other three")]);
    const [left, right] = [await readAll(store), await readAll(store, target)];
    expect(right.slice(0, 2).map(({ id, parentId, seq }) => [id, parentId, seq])).toEqual(
      left.slice(0, 2).map(({ id, parentId, seq }) => [id, parentId, seq]),
    );
    expect(right[2]?.parentId).toBe(left[1]?.id);
    expect(left).toHaveLength(3);
    for await (const page of store.read(target, { payload: "source", limit: 1 }))
      expect(page.records[0]?.source).toBe(source);
  });
});

describe("forkByCopy after an interruption", () => {
  it("resumes the same fork behind its last batch, and refuses to continue another one", async () => {
    const store = createMemoryStore({ limits: { batchRecords: 2 } });
    await openSession(store, ref, { random });
    for (const text of ["1", "2", "3", "4", "5"]) await store.append(ref, [user(text)]);
    const target = sessionRef({ key: "agent:main:cli:direct:fork" });
    const fork = (to: SessionStore, atSeq: number): Promise<SessionState> =>
      forkByCopy({ store, ref }, { store: to, ref: target }, { sessionId: random.uuid(), atSeq });
    let appends = 0;
    const failing = aroundCalls(store, ({ name, run }) =>
      name === "append" && ++appends === 2 ? Promise.reject(new Error("killed here")) : run(),
    );
    await expect(fork(failing, 5)).rejects.toThrow("killed here");
    const left = (await store.load(target))!;
    expect([left.head.lastSeq, left.entry["forkIncomplete"]]).toEqual([2, true]);
    await expect(fork(store, 4)).rejects.toMatchObject({ code: "REVISION_CONFLICT" });
    const resumed = await fork(store, 5);
    expect([resumed.sessionId, resumed.head.lastSeq]).toEqual([left.sessionId, 5]);
    expect(resumed.entry).not.toHaveProperty("forkIncomplete");
    expect((await readAll(store, target)).map(({ id }) => id)).toEqual((await readAll(store)).map(({ id }) => id));
    await expect(fork(store, 5)).rejects.toMatchObject({ code: "REVISION_CONFLICT" });
  });
});

describe("readWindow", () => {
  it("reads from the stated boundary on", async () => {
    const store = createMemoryStore();
    await openSession(store, ref, { random });
    await store.append(ref, [user("1"), user("2"), user("3")]);
    expect((await readWindow(store, ref)).records).toHaveLength(3);
    await store.append(ref, [user("4")], { windowFromSeq: 3 });
    expect((await readWindow(store, ref)).records.map(({ seq }) => seq)).toEqual([3, 4]);
  });
});

describe("redactRecords", () => {
  it("leaves a tombstone and marks the summaries written later", async () => {
    const store = createMemoryStore();
    await openSession(store, ref, { random });
    const { records } = await store.append(ref, [user("the password is hunter2"), user("ok")]);
    const kept = records[1]!.id;
    const compaction = { type: "compaction", summary: "s", firstKeptEntryId: kept, tokensBefore: 1 };
    const {
      records: [summary],
    } = await store.append(ref, [compaction]);
    await redactRecords(store, ref, [records[0]!.id], { reason: "secret" });
    const after = await readAll(store);
    expect(JSON.stringify(after)).not.toContain("hunter2");
    expect(after.map(({ seq, parentId }) => [seq, parentId]).slice(0, 2)).toEqual([
      [1, null],
      [2, records[0]!.id],
    ]);
    expect(after.at(-1)?.record).toMatchObject({
      customType: "throughline.note",
      data: { kind: "summary-outdated", summaryIds: [], redactedSeqs: [1, 3] },
    });
    expect(after.at(-2)?.record).toMatchObject({
      data: { kind: "summary-outdated", summaryIds: [summary!.id], redactedSeqs: [1] },
    });
    expect(after.at(-3)?.record).toMatchObject({
      data: { kind: "summary-superseded", summaryId: summary!.id, summary: withheldSummary },
    });
    expect((await store.load(ref))?.head.headId).toBe(summary!.id);
    // What comes after the compaction hangs on it: it stays one, without its text.
    expect(after[2]?.record).toMatchObject({ type: "compaction", summary: withheldSummary, firstKeptEntryId: kept });
  });

  it("writes no note into the session that a reset puts under the key meanwhile", async () => {
    const store = createMemoryStore();
    const { state } = await openSession(store, ref, { random });
    const { records } = await store.append(ref, [user("the password is hunter2")]);
    const resetAfterwards = replaceMembers(store, {
      async redact(...given) {
        const result = await store.redact(...given);
        await resetSession(store, ref, { random });
        return result;
      },
    });
    await expect(redactRecords(resetAfterwards, ref, [records[0]!.id], { reason: "secret" })).rejects.toMatchObject({
      code: "SESSION_REPLACED",
      details: { sessionId: state.sessionId },
    });
    expect(await readAll(store)).toEqual([]);
    expect(JSON.stringify(await readAll(store, { ...ref, archiveId: state.sessionId }))).not.toContain("hunter2");
  });

  it("takes what repeats the records along, summaries too, and leaves what cannot", async () => {
    const store = createMemoryStore();
    await openSession(store, ref, { random });
    const add = async (...drafts: RecordDraft[]) => (await store.append(ref, drafts)).records;
    const [trunk, secret] = await add(user("a plan"), user("the password is hunter2"));
    const [aside] = await add({ ...user("another way"), parentId: trunk!.id });
    const of = { tokensAtCheckpoint: 1, messageCountAtCheckpoint: 1, topics: ["hunter2"] };
    const summary = "It was hunter2.";
    const copies = await add(
      { type: "checkpoint", checkpoint: { ...of, summary, coversToId: secret!.id } },
      { type: "branch_summary", fromId: secret!.id, summary },
      { type: "compaction", summary, firstKeptEntryId: aside!.id, tokensBefore: 1 },
    );
    const more = await add(
      throughlineDraft("note", { kind: "summary-superseded", summaryId: copies[2]!.id, summary: `${summary} Better.` }),
      throughlineDraft("call", { turnId: "t", part: 2, splice: { keepStart: 0, keepEnd: 0, insert: [summary] } }),
      throughlineDraft("edit", { targetId: secret!.id, replacement: { content: `cut: ${summary}` } }),
    );
    const kept = await add(
      { type: "branch_summary", fromId: aside!.id, parentId: aside!.id, summary: "Another way was tried." },
      throughlineDraft("call", { turnId: "t", step: 1 }),
      throughlineDraft("edit", { targetId: trunk!.id, replacement: { content: "a good plan" } }),
    );
    const before = await readAll(store);
    const { seqs } = await redactRecords(store, ref, [secret!.id], { reason: "secret" });
    const left = (await readAll(store)).filter(({ record }) => JSON.stringify(record).includes("hunter2"));
    expect(left).toEqual([]);
    expect(seqs).toEqual([2, ...copies.map(({ seq }) => seq), ...more.map(({ seq }) => seq)]);
    const after = await readAll(store);
    for (const { seq } of kept) expect(after[seq - 1]).toEqual(before[seq - 1]);
    // Asked again it finds nothing more.
    expect((await redactRecords(store, ref, [secret!.id], { reason: "secret" })).seqs).toEqual([2]);
  });

  it("withholds the summaries before the records are gone, and tells of a redaction without any", async () => {
    const store = createMemoryStore();
    await openSession(store, ref, { random });
    const { records } = await store.append(ref, [user("the password is hunter2"), user("ok")]);
    await redactRecords(store, ref, [records[1]!.id], { reason: "secret" });
    expect((await readAll(store)).at(-1)?.record).toMatchObject({
      data: { kind: "summary-outdated", summaryIds: [], redactedSeqs: [2] },
    });
    await store.append(ref, [{ type: "compaction", summary: "s", firstKeptEntryId: records[1]!.id, tokensBefore: 1 }]);
    const failing = failingRedact(store);
    await expect(redactRecords(failing, ref, [records[0]!.id], { reason: "secret" })).rejects.toThrow("disk");
    expect((await readAll(store)).at(-1)?.record).toMatchObject({ data: { kind: "summary-outdated" } });
    await expect(redactRecords(store, ref, ["nobody"], { reason: "secret" })).rejects.toMatchObject({
      code: expect.any(String),
    });
  });
});
