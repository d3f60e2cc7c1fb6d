import assert from "node:assert/strict";
import type { ForkFacet, SessionRef, SessionState, SessionStore, StoreCapabilities } from "@throughline/core";
import {
  abilityOf,
  assertRefused,
  createSession,
  lineOf,
  noteDraft,
  readSources,
  readTexts,
  refOf,
  reopened,
  seqsOf,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const requires = ({ fork }: StoreCapabilities): boolean => fork;

function facetOf({ fork }: SessionStore): ForkFacet {
  assert.ok(fork !== undefined, "a store that declares fork has the facet");
  return fork;
}

async function forked(store: SessionStore, ref: SessionRef, name: string, atSeq?: number): Promise<SessionRef> {
  const options = { sessionId: `session-${name}`, ...(atSeq === undefined ? {} : { atSeq }) };
  await facetOf(store).fork(ref, refOf(name), options);
  return refOf(name);
}

/** Creates a session with one record per text, with the id `id-<text>`. */
async function saying(store: SessionStore, name: string, texts: readonly string[]): Promise<SessionRef> {
  const ref = await createSession(store, name);
  await store.append(
    ref,
    texts.map((text) => userDraft(text, { id: `id-${text}` })),
  );
  return ref;
}

/**
 * Reads records without the fields that a copying store sets again. These are the storing time, and the checksum,
 * because a codec encodes equal content differently.
 */
async function readContents(store: SessionStore, ref: SessionRef): Promise<readonly unknown[]> {
  return (await readSources(store, ref)).map(({ crc: _crc, storedAtMs: _storedAtMs, ...record }) => record);
}

export const forkCases: readonly ConformanceCase[] = [
  {
    id: "fork/shares",
    demand: "a fork begins with the records of its origin: same seq, ids and lines, and its entry says whence",
    requires,
    async run({ under, store }) {
      const ref = await createSession(store, "a", { entry: { label: "mine" } });
      const line = lineOf("given", '"message":{"role":"user","content":1.0}');
      await store.append(ref, [{ source: line }, userDraft("two"), noteDraft("aside")], { windowFromSeq: 2 });
      const state: SessionState = await facetOf(store).fork(ref, refOf("b"), { sessionId: "session-b" });
      assert.deepEqual(state.entry, {
        sessionId: "session-b",
        forkedFrom: { agentId: "main", key: ref.key, sessionId: "session-a", atSeq: 3 },
      });
      const origin = await store.load(ref);
      assert.deepEqual({ ...state.head, sessionId: "session-a" }, origin?.head);
      assert.deepEqual([state.messageCount, state.revision, state.archived], [2, 1, false]);
      assert.deepEqual(await store.load(refOf("b")), state);
      const same = await readContents(store, ref);
      assert.deepEqual(await readContents(store, refOf("b")), same);
      if (under.reopen !== undefined) assert.deepEqual(await readContents(await reopened(under), refOf("b")), same);
    },
  },
  {
    id: "fork/at-seq",
    demand: "a fork at an earlier record ends with it",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["one", "two"]);
      // A compaction appends such a window. It applies only to records after it, so a fork before it must not have it.
      await store.append(ref, [noteDraft("aside"), userDraft("three")], { windowFromSeq: 2 });
      const fork = await forked(store, ref, "b", 3);
      assert.deepEqual(await readTexts(store, fork), ["one", "two", "(custom)"]);
      const state = await store.load(fork);
      assert.deepEqual(
        [state?.head.lastSeq, state?.head.headId, state?.head.windowSeq, state?.messageCount],
        [3, "id-two", null, 2],
      );
      const empty = await store.load(await forked(store, ref, "c", 0));
      assert.deepEqual([empty?.head.lastSeq, empty?.head.headId, empty?.messageCount], [0, null, 0]);
      const beyond = await store.load(await forked(store, ref, "d", 99));
      assert.equal(beyond?.head.lastSeq, 4);
    },
  },
  {
    id: "fork/apart",
    demand: "what is appended after a fork belongs to one of them, and seq goes on without a gap",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["one", "two"]);
      const fork = await forked(store, ref, "b", 1);
      await store.append(fork, [userDraft("fork")]);
      await store.append(ref, [userDraft("three")]);
      assert.deepEqual(await readTexts(store, ref), ["one", "two", "three"]);
      assert.deepEqual(await readTexts(store, fork), ["one", "fork"]);
      assert.deepEqual(await readTexts(store, fork, { order: "descending" }), ["fork", "one"]);
      assert.deepEqual(await readTexts(store, fork, { afterSeq: 1 }), ["fork"]);
      assert.deepEqual(seqsOf(await readSources(store, fork)), [1, 2]);
      assert.equal((await readSources(store, fork))[1]?.parentId, "id-one");
    },
  },
  {
    id: "fork/ids",
    demand: "the ids a fork shares are taken in it, and those its origin used later are free",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["one", "two"]);
      const fork = await forked(store, ref, "b", 1);
      await assertRefused(store.append(fork, [userDraft("x", { id: "id-one" })]), "RECORD_ID_TAKEN");
      await store.append(fork, [userDraft("x", { id: "id-two" })]);
      assert.deepEqual(await readTexts(store, fork), ["one", "x"]);
    },
  },
  {
    id: "fork/of-fork",
    demand: "a fork can be forked, before and behind what it shares",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["one", "two", "three"]);
      const second = await forked(store, ref, "b", 2);
      await store.append(second, [userDraft("b3"), userDraft("b4")]);
      const third = await forked(store, second, "c", 3);
      const before = await forked(store, second, "d", 1);
      await store.append(third, [userDraft("c4")]);
      await store.append(before, [userDraft("d2")]);
      assert.deepEqual(await readTexts(store, third), ["one", "two", "b3", "c4"]);
      assert.deepEqual(await readTexts(store, before), ["one", "d2"]);
    },
  },
  {
    id: "fork/refused",
    demand: "a fork needs an origin, a free key and a free id",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["one"]);
      await createSession(store, "taken");
      const fork = facetOf(store);
      await assertRefused(fork.fork(refOf("none"), refOf("b"), { sessionId: "b" }), "SESSION_NOT_FOUND");
      await assertRefused(fork.fork(ref, refOf("taken"), { sessionId: "b" }), "SESSION_EXISTS");
      await assertRefused(fork.fork(ref, refOf("b"), { sessionId: "session-taken" }), "SESSION_EXISTS");
      await assertRefused(fork.fork(ref, refOf("b"), { sessionId: "SESSION-a" }), "ID_CASE_COLLISION");
      await assertRefused(fork.fork(ref, refOf("b"), { sessionId: "../b" }), "SESSION_ID_INVALID");
      await assertRefused(fork.fork(ref, refOf("b"), { sessionId: "b", atSeq: -1 }), "INPUT_INVALID");
      assert.equal(await store.load(refOf("b")), null);
    },
  },
  {
    id: "fork/elsewhere",
    demand: "a fork stays with the namespace and the agent of its origin and does not begin archived",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["one"]);
      const fork = facetOf(store);
      for (const target of [refOf("b", { agentId: "other" }), refOf("b", { namespace: "tenant" })]) {
        await assertRefused(fork.fork(ref, target, { sessionId: "b" }), "KEY_AGENT_MISMATCH");
        assert.equal(await store.load(target), null);
      }
      const archived = { ...refOf("b"), archiveId: "b" };
      await assertRefused(fork.fork(ref, archived, { sessionId: "b" }), "SESSION_ARCHIVED");
      assert.equal(await store.load(archived), null);
    },
  },
  {
    id: "fork/origin-purged",
    demand: "forks keep what they share when their origin is purged, and nobody keeps the rest",
    requires,
    async run({ under, store }) {
      const ref = await saying(store, "a", ["one", "two", "three", "originonly"]);
      const oldest = await forked(store, ref, "b", 2);
      await store.append(oldest, [userDraft("b3")]);
      const longer = await forked(store, ref, "c", 3);
      const shorter = await forked(store, ref, "d", 1);
      const deep = await forked(store, oldest, "e");
      await store.remove(ref, { purge: true });
      const expected = [["one", "two", "b3"], ["one", "two", "three"], ["one"], ["one", "two", "b3"]];
      const read = (from: SessionStore): Promise<string[][]> =>
        Promise.all([oldest, longer, shorter, deep].map((each) => readTexts(from, each)));
      assert.deepEqual(await read(store), expected);
      await assertRefused(store.append(longer, [userDraft("x", { id: "id-two" })]), "RECORD_ID_TAKEN");
      await store.append(longer, [userDraft("c4", { id: "id-originonly" })]);
      await store.remove(oldest, { purge: true });
      assert.deepEqual((await read(store).catch(() => null)) ?? (await readTexts(store, longer)), [
        "one",
        "two",
        "three",
        "c4",
      ]);
      assert.deepEqual(
        [await readTexts(store, shorter), await readTexts(store, deep)],
        [["one"], ["one", "two", "b3"]],
      );
      if (under.files === undefined) return;
      for (const bytes of await under.files())
        assert.doesNotMatch(Buffer.from(bytes).toString("latin1"), /"originonly"/, "what nobody shares is gone");
    },
  },
  {
    id: "fork/redacted",
    demand: "a record that sessions share is redacted in all of them, whichever is asked",
    requires,
    needs: ["files"],
    async run({ under, store }) {
      const ref = await saying(store, "a", ["one", "secret-a", "secret-b", "own"]);
      const fork = await forked(store, ref, "b", 3);
      await store.redact(ref, ["id-secret-a"], { reason: "test" });
      await store.redact(fork, ["id-secret-b"], { reason: "test" });
      assert.deepEqual(await readTexts(store, ref), ["one", "(custom)", "(custom)", "own"]);
      assert.deepEqual(await readTexts(store, fork), ["one", "(custom)", "(custom)"]);
      assert.deepEqual([(await store.load(ref))?.messageCount, (await store.load(fork))?.messageCount], [2, 1]);
      for (const bytes of await abilityOf(under, "files")())
        assert.doesNotMatch(Buffer.from(bytes).toString("latin1"), /"secret-[ab]"/);
    },
  },
  {
    id: "fork/purged",
    demand: "purging a fork leaves its origin as it was",
    requires,
    async run({ store }) {
      const ref = await saying(store, "a", ["one", "two"]);
      const before = await store.load(ref);
      const fork = await forked(store, ref, "b");
      await store.append(fork, [userDraft("three")]);
      await store.remove(fork, { purge: true });
      assert.deepEqual(await readTexts(store, ref), ["one", "two"]);
      assert.deepEqual(await store.load(ref), before);
      assert.equal(await store.load(fork), null);
    },
  },
  {
    id: "fork/sharers",
    demand: "a store that says which sessions share a record names them all, archived ones too, and no others",
    requires,
    async run({ store }) {
      const { sharers } = facetOf(store);
      if (sharers === undefined) return;
      const ref = await saying(store, "a", ["one", "two", "three", "own"]);
      const fork = await forked(store, ref, "b", 3);
      const third = await forked(store, fork, "c", 2);
      const { ref: archived } = await store.move(third, { kind: "archive" });
      await saying(store, "d", ["other"]);
      const found = async (from: SessionRef, seqs: readonly number[]): Promise<readonly unknown[]> =>
        (await sharers(from, seqs)).map(({ ref: at, sessionId, seqs: shared }) => [at, sessionId, shared]).toSorted();
      const ids = { ref: "session-a", fork: "session-b", archived: "session-c" };
      const inFork = [fork, ids.fork, [2, 3]];
      assert.deepEqual(await found(ref, [2, 3, 4]), [[archived, ids.archived, [2]], inFork].toSorted());
      assert.deepEqual(await found(fork, [3]), [[ref, ids.ref, [3]]]);
      assert.deepEqual(
        await found(archived, [1]),
        [
          [ref, ids.ref, [1]],
          [fork, ids.fork, [1]],
        ].toSorted(),
      );
      assert.deepEqual(await found(ref, [4]), []);
      assert.deepEqual(await found(ref, []), []);
      await assertRefused(sharers(refOf("none"), [1]), "SESSION_NOT_FOUND");
      await store.remove(fork, { purge: true });
      assert.deepEqual(await found(ref, [1, 3]), [[archived, ids.archived, [1]]]);
    },
  },
];
