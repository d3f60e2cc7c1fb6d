import assert from "node:assert/strict";
import { createSession, readRecords, readSources, readTexts, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

/** Overwrites every field of a value at every depth, to show whether the store shares it. */
function spoil(value: unknown): void {
  if (value instanceof Uint8Array) value.fill(0);
  else if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    for (const part of Object.values(value)) spoil(part);
    for (const name of Object.keys(value)) Reflect.set(value, name, "spoilt");
  }
}

export const copyCases: readonly ConformanceCase[] = [
  {
    id: "copies/records-read",
    demand: "changing a record that was read changes nothing in the store",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { deep: { list: [1] } })]);
      const before = JSON.stringify(await readRecords(store, ref));
      spoil(await readRecords(store, ref));
      assert.equal(JSON.stringify(await readRecords(store, ref)), before);
    },
  },
  {
    id: "copies/bytes-read",
    demand: "changing the bytes of a line that was read changes nothing in the store",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const record = { type: "message", id: "r1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
      await store.append(ref, [{ source: Uint8Array.of(1, 2, 0xff), record }]);
      spoil((await readSources(store, ref))[0]?.source);
      const source = (await readSources(store, ref))[0]?.source;
      assert.deepEqual([...(source instanceof Uint8Array ? source : [])], [1, 2, 0xff]);
    },
  },
  {
    id: "copies/drafts",
    demand: "changing a draft after the call changes nothing in the store",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const [draft, bytes] = [userDraft("one"), Uint8Array.of(1, 2, 0xff)];
      const record = { type: "message", id: "r2", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
      const drafts = [draft, { source: bytes, record }];
      await store.append(ref, drafts);
      spoil(drafts);
      const [first, second] = await readSources(store, ref);
      assert.deepEqual(first?.record["message"], { role: "user", content: "one" });
      assert.deepEqual([...(second?.source instanceof Uint8Array ? second.source : [])], [1, 2, 0xff]);
    },
  },
  {
    id: "copies/states",
    demand: "changing a state that was loaded, listed or saved changes nothing in the store",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { deep: { list: [1] } } });
      const saved = await store.save(ref, { sessionId: "session-a", deep: { list: [2] } }, { ifRevision: 1 });
      const before = JSON.stringify(await store.load(ref));
      spoil(saved);
      spoil(await store.load(ref));
      spoil((await store.list()).sessions);
      assert.equal(JSON.stringify(await store.load(ref)), before);
    },
  },
  {
    id: "copies/entries-given",
    demand: "changing an entry or patch after the call changes nothing in the store",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const entry = { sessionId: "session-a", deep: { list: [1] } };
      const patch = { other: { list: [2] } };
      await store.save(ref, entry, { ifRevision: 1 });
      await store.append(ref, [], { entry: patch });
      spoil(entry);
      spoil(patch);
      assert.deepEqual((await store.load(ref))?.entry, {
        sessionId: "session-a",
        deep: { list: [1] },
        other: { list: [2] },
      });
    },
  },
  {
    id: "copies/results",
    demand: "changing the result of an append changes nothing in the store or in a later replay",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const result = await store.append(ref, [userDraft("one")], {
        idempotencyKey: "k",
        turn: { action: "open", turnId: "t", owner: "o", leaseUntilMs: 1, fence: 1 },
      });
      const before = JSON.stringify({ ...result, replayed: true });
      spoil(result);
      assert.equal(JSON.stringify(await store.append(ref, [userDraft("one")], { idempotencyKey: "k" })), before);
      const head = (await store.load(ref))?.head;
      assert.deepEqual([head?.lastSeq, head?.turn?.owner, await readTexts(store, ref)], [1, "o", ["one"]]);
    },
  },
];
