import assert from "node:assert/strict";
import { patchEntry, updateEntry } from "@throughline/core/internal";
import type { SessionEntry } from "@throughline/core";
import { assertRefused, createSession, numbersTo, readRecords, readTexts, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const farAheadMs = 24 * 60 * 60 * 1000;

export const entryCases: readonly ConformanceCase[] = [
  {
    id: "entries/create",
    demand: "a new session is empty, at revision 1, and load says the same",
    async run({ store }) {
      const state = await store.save(refOf("a"), { sessionId: "session-a", label: "x" }, { ifRevision: null });
      assert.deepEqual(
        [state.ref, state.sessionId, state.archived, state.revision, state.messageCount],
        [refOf("a"), "session-a", false, 1, 0],
      );
      assert.deepEqual(state.entry, { sessionId: "session-a", label: "x" });
      assert.deepEqual(state.head, {
        sessionId: "session-a",
        lastSeq: 0,
        headId: null,
        windowSeq: null,
        fence: 0,
        turn: null,
      });
      assert.ok(state.createdAtMs > 0 && state.updatedAtMs >= state.createdAtMs, "a new session has its times");
      assert.deepEqual(await store.load(refOf("a")), state);
    },
  },
  {
    id: "entries/created-at",
    demand:
      "a session that comes from elsewhere says when it began; a time to come is now, and what is there keeps its own",
    async run({ store }) {
      const createdAtMs = 1_600_000_000_000;
      const ref = refOf("a");
      const state = await store.save(ref, { sessionId: "session-a" }, { ifRevision: null, createdAtMs });
      assert.equal(state.createdAtMs, createdAtMs);
      const changed = await store.save(ref, { sessionId: "session-a" }, { ifRevision: 1, createdAtMs: 5 });
      assert.equal(changed.createdAtMs, createdAtMs);
      await store.append(ref, [userDraft("one")]);
      assert.equal((await store.load(ref))?.createdAtMs, createdAtMs);
      assert.equal((await store.list()).sessions[0]?.createdAtMs, createdAtMs);
      const next = await store.save(ref, { sessionId: "session-b" }, { ifRevision: changed.revision, createdAtMs: 0 });
      assert.equal(next.createdAtMs, 0, "a reset begins a session, too");
      const archived = await store.load({ ...ref, archiveId: "session-a" });
      assert.equal(archived?.createdAtMs, createdAtMs);
      const farMs = state.updatedAtMs + farAheadMs;
      const early = await store.save(refOf("b"), { sessionId: "session-c" }, { ifRevision: null, createdAtMs: farMs });
      assert.ok(early.createdAtMs < farMs && early.createdAtMs > createdAtMs, "a time to come is now");
      for (const wrong of [-1, 1.5, Number.NaN, "2020-01-01"])
        await assertRefused(
          store.save(refOf("c"), { sessionId: "session-d" }, { ifRevision: null, createdAtMs: wrong as number }),
          "INPUT_INVALID",
        );
      assert.equal(await store.load(refOf("c")), null);
    },
  },
  {
    id: "entries/if-revision",
    demand: "an entry is written only over the revision it was loaded with",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const state = await store.save(ref, { sessionId: "session-a", label: "x" }, { ifRevision: 1 });
      assert.equal(state.revision, 2);
      await assertRefused(
        store.save(ref, { sessionId: "session-a", label: "late" }, { ifRevision: 1 }),
        "REVISION_CONFLICT",
      );
      assert.equal((await store.load(ref))?.entry.label, "x");
    },
  },
  {
    id: "entries/create-once",
    demand: "a session that exists is not created again, one that does not is not changed",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { label: "x" } });
      await assertRefused(store.save(ref, { sessionId: "session-b" }, { ifRevision: null }), "REVISION_CONFLICT");
      await assertRefused(store.save(refOf("b"), { sessionId: "session-b" }, { ifRevision: 1 }), "REVISION_CONFLICT");
      assert.deepEqual([(await store.load(ref))?.entry.label, await store.load(refOf("b"))], ["x", null]);
    },
  },
  {
    id: "entries/unknown-fields",
    demand: "fields of other programs are kept, the field __proto__ included",
    async run({ store }) {
      const ref = refOf("a");
      const text =
        '{"sessionId":"session-a","__proto__":{"x":1},"toString":"s","new":{"deep":[1,null]},"queueMode":"steer"}';
      await store.save(ref, JSON.parse(text) as SessionEntry, { ifRevision: null });
      assert.equal(sorted((await store.load(ref))?.entry), sorted(JSON.parse(text)));
      await store.append(ref, [userDraft("one")], { entry: { label: "x" } });
      assert.equal(sorted((await store.load(ref))?.entry), sorted({ ...(JSON.parse(text) as object), label: "x" }));
    },
  },
  {
    id: "entries/written-whole",
    demand: "save replaces the entry: a field that is left out is gone",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { label: "x", model: "m" } });
      await store.save(ref, { sessionId: "session-a", model: "n" }, { ifRevision: 1 });
      assert.deepEqual((await store.load(ref))?.entry, { sessionId: "session-a", model: "n" });
    },
  },
  {
    id: "entries/patch",
    demand: "an append sets and removes fields of the entry in the same commit",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { label: "x", model: "m", kept: [1] } });
      const { revision } = await store.append(ref, [userDraft("one")], { entry: { label: undefined, model: "n" } });
      const state = await store.load(ref);
      assert.deepEqual(
        [state?.entry, state?.revision, revision],
        [{ sessionId: "session-a", model: "n", kept: [1] }, 2, 2],
      );
    },
  },
  {
    id: "entries/patch-with-refused-append",
    demand: "a refused append leaves the entry alone",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { label: "x" } });
      await assertRefused(
        store.append(ref, [userDraft("one")], { entry: { label: "y" }, expect: { head: "r9" } }),
        "APPEND_CONFLICT",
      );
      await assertRefused(store.append(ref, [{ type: "" }], { entry: { label: "y" } }), "RECORD_INVALID");
      const state = await store.load(ref);
      assert.deepEqual([state?.entry.label, state?.revision], ["x", 1]);
    },
  },
  {
    id: "entries/refused-patch",
    demand: "a patch that changes the session id refuses the append with it",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(
        store.append(ref, [userDraft("one")], { entry: { sessionId: "session-b" } }),
        "INPUT_INVALID",
      );
      assert.deepEqual([(await store.load(ref))?.sessionId, await readRecords(store, ref)], ["session-a", []]);
    },
  },
  {
    id: "entries/append-keeps-revision",
    demand: "an append without a patch leaves the revision as it is",
    async run({ store }) {
      const ref = await createSession(store, "a");
      assert.equal((await store.append(ref, [userDraft("one")])).revision, 1);
      await store.save(ref, { sessionId: "session-a", label: "x" }, { ifRevision: 1 });
    },
  },
  {
    id: "entries/new-session-id",
    demand: "an entry with another session id begins an empty session and archives the old one with its records",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("old")]);
      const state = await store.save(ref, { sessionId: "session-b", label: "new" }, { ifRevision: 1 });
      assert.deepEqual([state.sessionId, state.head.lastSeq, await readTexts(store, ref)], ["session-b", 0, []]);
      const [archived, ...others] = (await store.list({ state: "archived" })).sessions;
      assert.deepEqual([archived?.sessionId, archived?.archived, others], ["session-a", true, []]);
      assert.deepEqual(await readTexts(store, archived?.ref ?? ref), ["old"]);
    },
  },
  {
    id: "entries/late-after-new-session-id",
    demand: "a writer who loaded before the reset cannot write over the new session",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.save(ref, { sessionId: "session-b" }, { ifRevision: 1 });
      await assertRefused(store.save(ref, { sessionId: "session-c" }, { ifRevision: 1 }), "REVISION_CONFLICT");
      assert.equal((await store.load(ref))?.sessionId, "session-b");
    },
  },
  {
    id: "entries/updated-at",
    demand: "updatedAtMs moves with appends and never goes back",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const created = (await store.load(ref))?.updatedAtMs ?? 0;
      const saved = await store.save(ref, { sessionId: "session-a", updatedAt: 1000 }, { ifRevision: 1 });
      assert.ok(saved.updatedAtMs >= created, "an older updatedAt changes nothing");
      const { records } = await store.append(ref, [userDraft("one")], { entry: { updatedAt: 2000 } });
      const after = (await store.load(ref))?.updatedAtMs ?? 0;
      assert.ok(after >= saved.updatedAtMs, "a patch cannot turn the time back");
      await store.append(ref, [userDraft("two")]);
      assert.ok(((await store.load(ref))?.updatedAtMs ?? 0) >= (records[0]?.storedAtMs ?? 0), "an append is activity");
    },
  },
  {
    id: "entries/updated-at-own",
    demand: "a session created with an updatedAt of the past has it",
    async run({ store }) {
      const state = await store.save(
        refOf("a"),
        { sessionId: "session-a", updatedAt: 1_700_000_000_000 },
        { ifRevision: null },
      );
      assert.equal(state.updatedAtMs, 1_700_000_000_000);
    },
  },
  {
    id: "entries/updated-at-ahead",
    demand: "an updatedAt far in the future is not believed",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const created = (await store.load(ref))?.createdAtMs ?? 0;
      const saved = await store.save(
        ref,
        { sessionId: "session-a", updatedAt: created + farAheadMs },
        { ifRevision: 1 },
      );
      assert.ok(saved.updatedAtMs < created + farAheadMs, "save clamps");
      await store.append(ref, [], { entry: { updatedAt: created + farAheadMs } });
      assert.ok(((await store.load(ref))?.updatedAtMs ?? Infinity) < created + farAheadMs, "append clamps");
    },
  },
  {
    id: "entries/concurrent-updates",
    demand: "no update of many at once is lost",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { count: 0 } });
      await Promise.all(
        numbersTo(8).map(() =>
          updateEntry(store, ref, (entry) => patchEntry(entry, { count: Number(entry["count"]) + 1 })),
        ),
      );
      const state = await store.load(ref);
      assert.deepEqual([state?.entry["count"], state?.revision], [8, 9]);
    },
  },
  {
    id: "entries/bad-ids",
    demand: "ids that could not be file names are refused at creation",
    async run({ store }) {
      for (const sessionId of ["", "..", "../x", "a/b", "a\\b", "CON", ".x", "x.", "ä", "x".repeat(129)]) {
        await assertRefused(store.save(refOf("a"), { sessionId }, { ifRevision: null }), "SESSION_ID_INVALID");
      }
      for (const agentId of ["", "..", "a/b", "a.b", "nul"]) {
        await assertRefused(
          store.save(refOf("a", { agentId }), { sessionId: "session-a" }, { ifRevision: null }),
          "AGENT_ID_INVALID",
        );
      }
      await assertRefused(
        store.save(refOf("a", { namespace: "../x" }), { sessionId: "session-a" }, { ifRevision: null }),
        "NAMESPACE_INVALID",
      );
      assert.deepEqual((await store.list({ state: "any" })).sessions, []);
    },
  },
  {
    id: "entries/session-id-taken",
    demand: "a session id is used once in an agent, archived sessions included; another agent may use it",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(store.save(refOf("b"), { sessionId: "session-a" }, { ifRevision: null }), "SESSION_EXISTS");
      await store.move(ref, { kind: "archive" });
      await assertRefused(store.save(refOf("b"), { sessionId: "session-a" }, { ifRevision: null }), "SESSION_EXISTS");
      assert.equal(await store.load(refOf("b")), null);
      await createSession(store, "a", { agentId: "other" });
    },
  },
  {
    id: "entries/ids-differing-by-case",
    demand: "session and agent ids that differ by case only are refused",
    async run({ store }) {
      await createSession(store, "a", { sessionId: "Session-A" });
      await assertRefused(
        store.save(refOf("b"), { sessionId: "session-a" }, { ifRevision: null }),
        "ID_CASE_COLLISION",
      );
      await assertRefused(
        store.save(refOf("a", { agentId: "MAIN" }), { sessionId: "s" }, { ifRevision: null }),
        "ID_CASE_COLLISION",
      );
      assert.equal((await store.list({ state: "any" })).sessions.length, 1);
    },
  },
  {
    id: "entries/not-an-entry",
    demand: "a value that is not an entry is refused",
    async run({ store }) {
      for (const entry of [null, [], {}, { sessionId: 7 }, { sessionId: "session-a", big: 1n }]) {
        await assertRefused(store.save(refOf("a"), entry as SessionEntry, { ifRevision: null }), "INPUT_INVALID");
      }
      assert.equal(await store.load(refOf("a")), null);
    },
  },
];

/** Serializes an entry with sorted fields, because a store may return them in any order. */
function sorted(entry: unknown): string {
  return JSON.stringify(Object.entries(entry as object).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
