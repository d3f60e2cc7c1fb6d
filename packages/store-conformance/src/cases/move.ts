import assert from "node:assert/strict";
import { assertRefused, createSession, readRecords, readTexts, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

export const moveCases: readonly ConformanceCase[] = [
  {
    id: "move/rename",
    demand: "a renamed session keeps everything but its key",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { label: "x" } });
      await store.append(ref, [userDraft("one"), userDraft("two")], { windowFromSeq: 2 });
      const [before, records] = [await store.load(ref), await readRecords(store, ref)];
      const after = await store.move(ref, { kind: "rename", key: "agent:main:b" });
      assert.deepEqual(after, { ...before, ref: refOf("b") });
      assert.deepEqual([await store.load(ref), await store.load(refOf("b"))], [null, after]);
      assert.deepEqual(await readRecords(store, refOf("b")), records);
    },
  },
  {
    id: "move/rename-keeps-keys",
    demand: "idempotency keys outlast a rename",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")], { idempotencyKey: "k" });
      const { ref: renamed } = await store.move(ref, { kind: "rename", key: "agent:main:b" });
      assert.equal((await store.append(renamed, [userDraft("one")], { idempotencyKey: "k" })).replayed, true);
    },
  },
  {
    id: "move/rename-onto-another",
    demand: "a key that another session holds is refused",
    async run({ store }) {
      const [one, two] = [await createSession(store, "a"), await createSession(store, "b")];
      await store.append(two, [userDraft("two")]);
      await assertRefused(store.move(one, { kind: "rename", key: two.key }), "SESSION_EXISTS");
      assert.deepEqual([(await store.load(one))?.sessionId, await readTexts(store, two)], ["session-a", ["two"]]);
    },
  },
  {
    id: "move/rename-to-another-agent",
    demand: "a key that names another agent is refused",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(store.move(ref, { kind: "rename", key: "agent:other:a" }), "KEY_AGENT_MISMATCH");
      assert.equal((await store.load(ref))?.sessionId, "session-a");
    },
  },
  {
    id: "move/archive",
    demand: "an archived session leaves its key, can be read and takes no writes",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      const state = await store.move(ref, { kind: "archive" });
      assert.deepEqual([state.archived, state.ref.key, typeof state.ref.archiveId], [true, ref.key, "string"]);
      assert.equal(await store.load(ref), null);
      assert.deepEqual(await store.load(state.ref), state);
      assert.deepEqual(await readTexts(store, state.ref), ["one"]);
      await assertRefused(store.append(state.ref, [userDraft("two")]), "SESSION_ARCHIVED");
      await assertRefused(store.save(state.ref, state.entry, { ifRevision: state.revision }), "SESSION_ARCHIVED");
      await assertRefused(store.move(state.ref, { kind: "rename", key: "agent:main:b" }), "SESSION_ARCHIVED");
      assert.deepEqual(await readTexts(store, state.ref), ["one"]);
    },
  },
  {
    id: "move/archives-of-one-key",
    demand: "every archived session of a key keeps its own content",
    async run({ store }) {
      const refs = [];
      for (const name of ["x", "y", "z"]) {
        const ref = await createSession(store, name, { key: "agent:main:a" });
        await store.append(ref, [userDraft(name)]);
        refs.push((await store.move(ref, { kind: "archive" })).ref);
      }
      for (const [index, name] of ["x", "y", "z"].entries())
        assert.deepEqual(await readTexts(store, refs[index] ?? refOf("a")), [name]);
      assert.equal((await store.list({ state: "archived" })).sessions.length, 3);
    },
  },
  {
    id: "move/restore",
    demand: "a restored session goes on where it stood",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })], { idempotencyKey: "k" });
      const archived = await store.move(ref, { kind: "archive" });
      const restored = await store.move(archived.ref, { kind: "restore" });
      assert.deepEqual([restored.ref, restored.archived, restored.sessionId], [ref, false, "session-a"]);
      assert.equal(await store.load(archived.ref), null);
      await store.append(ref, [userDraft("two")], { expect: { head: "r1" } });
      assert.deepEqual(await readTexts(store, ref), ["one", "two"]);
      assert.equal((await store.append(ref, [userDraft("one", { id: "r1" })], { idempotencyKey: "k" })).replayed, true);
    },
  },
  {
    id: "move/restore-onto-another",
    demand: "restoring is refused while another session holds the key, and for one that is not archived",
    async run({ store }) {
      const archived = await store.move(await createSession(store, "a"), { kind: "archive" });
      const ref = await createSession(store, "b", { key: archived.ref.key });
      await assertRefused(store.move(archived.ref, { kind: "restore" }), "SESSION_EXISTS");
      await assertRefused(store.move(ref, { kind: "restore" }), "SESSION_EXISTS", "INPUT_INVALID");
      assert.equal((await store.load(ref))?.sessionId, "session-b");
    },
  },
];

export const removeCases: readonly ConformanceCase[] = [
  {
    id: "remove/archives",
    demand: "removing archives: nothing is lost",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      await store.remove(ref);
      assert.equal(await store.load(ref), null);
      const [archived] = (await store.list({ state: "archived" })).sessions;
      assert.deepEqual(await readTexts(store, archived?.ref ?? ref), ["one"]);
      await store.remove(archived?.ref ?? ref);
      assert.equal((await store.list({ state: "archived" })).sessions.length, 1);
    },
  },
  {
    id: "remove/purge",
    demand: "purging leaves nothing of the session",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      await store.remove(ref, { purge: true });
      assert.equal(await store.load(ref), null);
      assert.deepEqual((await store.list({ state: "any" })).sessions, []);
      await assertRefused(store.append(ref, [userDraft("two")]), "SESSION_NOT_FOUND");
    },
  },
  {
    id: "remove/purge-archived",
    demand: "an archived session can be purged",
    async run({ store }) {
      const { ref } = await store.move(await createSession(store, "a"), { kind: "archive" });
      await store.remove(ref, { purge: true });
      assert.equal(await store.load(ref), null);
      assert.deepEqual((await store.list({ state: "any" })).sessions, []);
    },
  },
  {
    id: "remove/purges-one",
    demand: "purging a session leaves the others, archived ones of its key included",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("old")]);
      await store.save(ref, { sessionId: "session-a2" }, { ifRevision: 1 });
      await createSession(store, "b");
      await store.remove(ref, { purge: true });
      const left = (await store.list({ state: "any", sort: "key" })).sessions;
      assert.deepEqual(
        left.map(({ sessionId }) => sessionId),
        ["session-a", "session-b"],
      );
      assert.deepEqual(await readTexts(store, left[0]?.ref ?? ref), ["old"]);
    },
  },
  {
    id: "remove/files",
    demand: "what was purged stands in no file any more",
    needs: ["files"],
    async run({ under, store }) {
      const ref = await createSession(store, "a", { entry: { label: "entry-secret" } });
      await store.append(ref, [userDraft("record-secret")]);
      await store.remove(ref, { purge: true });
      for (const file of (await under.files?.()) ?? [])
        assert.doesNotMatch(Buffer.from(file).toString("latin1"), /(record|entry)-secret/);
    },
  },
];
