import assert from "node:assert/strict";
import { abilityOf, assertRefused, createSession, readRecords, reopened, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  facetOf,
  fill,
  hitsAt,
  model,
  nearestTo,
  otherModel,
  pendingOf,
  putOf,
  rangeOf,
  requires,
  scope,
  vectorOf,
  withRecords,
} from "../vector-tools.ts";

export const vectorCases: readonly ConformanceCase[] = [
  {
    id: "vectors/nearest",
    demand: "the nearest text comes first, with the cosine as its score, and the limit cuts off the farthest",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 12);
      await fill(store, ref);
      const hits = await nearestTo(store, 7, { limit: 3 });
      assert.equal(hits.length, 3);
      const [best] = hits;
      assert.deepEqual(
        [best?.ref, best?.sessionId, best?.firstSeq, best?.lastSeq, best?.part],
        [ref, "session-a", 7, 7, 0],
      );
      assert.ok(Math.abs((best?.score ?? 0) - 1) < 0.01, "the score of the same vector is 1");
      assert.ok((hits[1]?.score ?? 1) < 0.2, "another direction is far");
    },
  },
  {
    id: "vectors/many",
    demand: "the nearest text is found among more vectors than are compared by their numbers",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 20);
      const range = await rangeOf(store, ref);
      const vectors = Array.from({ length: 600 }, (_, index) => ({
        firstSeq: 1 + (index % 20),
        lastSeq: 1 + (index % 20),
        part: Math.floor(index / 20),
        vector: vectorOf(index === 457 ? 39 : index % 39),
      }));
      assert.equal(await facetOf(store).put(ref, { ...putOf(range), vectors }), true);
      const [best] = await nearestTo(store, 39);
      assert.deepEqual([best?.firstSeq, best?.part], [1 + (457 % 20), Math.floor(457 / 20)]);
    },
  },
  {
    id: "vectors/scope",
    demand: "vectors are in their namespace and agent only: another one finds, counts and deletes none of them",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 2);
      await fill(store, ref);
      for (const at of [
        { namespace: "tenant", agentId: "main" },
        { namespace: "", agentId: "other" },
      ]) {
        const own = await withRecords(store, `own-${at.namespace}-${at.agentId}`, 2, at);
        assert.deepEqual(await nearestTo(store, 1, { at }), []);
        await fill(store, own, 10);
        assert.deepEqual(await hitsAt(store, 1, { at }), []);
        assert.deepEqual(await hitsAt(store, 11, { at }), [`${own.key}#1`]);
        assert.equal((await pendingOf(store, { at })).records, 0);
        assert.equal(await facetOf(store).forget(at), 2);
      }
      assert.deepEqual(await hitsAt(store, 1), [`${ref.key}#1`]);
      assert.deepEqual(await hitsAt(store, 11), []);
    },
  },
  {
    id: "vectors/sessions",
    demand: "a key and a state limit the search, also after a session was archived or renamed",
    requires,
    async run({ store }) {
      const one = await withRecords(store, "one", 1);
      const other = await withRecords(store, "other", 1);
      for (const ref of [one, other]) await fill(store, ref);
      assert.deepEqual(await hitsAt(store, 1, { key: one.key }), [`${one.key}#1`]);
      await store.move(one, { kind: "archive" });
      assert.deepEqual(await hitsAt(store, 1, { state: "active" }), [`${other.key}#1`]);
      const [archived] = await nearestTo(store, 1, { state: "archived" });
      assert.deepEqual(archived?.ref, { ...one, archiveId: "session-one" });
      assert.equal((await hitsAt(store, 1)).length, 2);
      await store.move(other, { kind: "rename", key: "agent:main:renamed" });
      assert.deepEqual(await hitsAt(store, 1, { state: "active" }), ["agent:main:renamed#1"]);
    },
  },
  {
    id: "vectors/models",
    demand: "vectors of another model are never compared, and both sets stay until one is forgotten",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 2);
      await fill(store, ref);
      assert.deepEqual(
        [(await pendingOf(store)).hasOthers, (await pendingOf(store, { of: otherModel })).hasOthers],
        [false, true],
      );
      await fill(store, ref, 10, otherModel);
      assert.deepEqual([await hitsAt(store, 1), await hitsAt(store, 11)], [[`${ref.key}#1`], []]);
      assert.deepEqual(
        [await hitsAt(store, 1, { of: otherModel }), await hitsAt(store, 11, { of: otherModel })],
        [[], [`${ref.key}#1`]],
      );
      assert.equal(await facetOf(store).forget(scope, { keep: otherModel }), 2);
      assert.deepEqual(
        [await nearestTo(store, 1), await hitsAt(store, 11, { of: otherModel })],
        [[], [`${ref.key}#1`]],
      );
      assert.equal((await pendingOf(store)).records, 2);
      assert.equal((await pendingOf(store, { of: otherModel })).hasOthers, false);
    },
  },
  {
    id: "vectors/pending",
    demand: "every record without vectors is pending, of archived sessions too, and none other",
    requires,
    async run({ store }) {
      const one = await withRecords(store, "one", 3);
      const other = await withRecords(store, "other", 2);
      await createSession(store, "empty");
      await store.move(one, { kind: "archive" });
      const archived = { ...one, archiveId: "session-one" };
      const before = await pendingOf(store);
      assert.deepEqual([before.records, before.ranges.length], [5, 2]);
      assert.equal((await pendingOf(store, { limit: 1 })).ranges.length, 1);
      assert.equal((await pendingOf(store, { limit: 1 })).records, 5);
      await fill(store, other);
      const { ranges, records } = await pendingOf(store);
      assert.deepEqual(
        ranges.map(({ ref, sessionId, fromSeq, toSeq, coveredSeq }) => ({
          ref,
          sessionId,
          fromSeq,
          toSeq,
          coveredSeq,
        })),
        [{ ref: archived, sessionId: "session-one", fromSeq: 1, toSeq: 3, coveredSeq: 0 }],
      );
      assert.equal(records, 3);
      await facetOf(store).put(archived, putOf(ranges[0] ?? assert.fail("a range")));
      assert.deepEqual((await pendingOf(store)).ranges, []);
    },
  },
  {
    id: "vectors/grown",
    demand: "a session that grew is pending from where its last exchange began, and a put replaces what was there",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 3);
      const first = await rangeOf(store, ref);
      assert.equal(await facetOf(store).put(ref, { ...putOf(first), resumeSeq: 2 }), true);
      await store.append(ref, [userDraft("four")]);
      const { fromSeq, toSeq, coveredSeq } = await rangeOf(store, ref);
      assert.deepEqual([fromSeq, toSeq, coveredSeq, (await pendingOf(store)).records], [2, 4, 3, 1]);
      await fill(store, ref, 20);
      assert.deepEqual(
        [await hitsAt(store, 1), await hitsAt(store, 2), await hitsAt(store, 22)],
        [[`${ref.key}#1`], [], [`${ref.key}#2`]],
      );
      assert.equal((await pendingOf(store)).records, 0);
    },
  },
  {
    id: "vectors/empty-put",
    demand: "records without text are covered by a put without vectors",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 2);
      assert.equal(await facetOf(store).put(ref, { ...putOf(await rangeOf(store, ref)), vectors: [] }), true);
      assert.deepEqual([(await pendingOf(store)).records, await nearestTo(store, 1)], [0, []]);
    },
  },
  {
    id: "vectors/redacted",
    demand: "a redaction deletes the vectors of its records in the same commit, and their records are pending again",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 4);
      await fill(store, ref);
      assert.equal((await hitsAt(store, 2)).length, 1);
      const records = await readRecords(store, ref);
      await store.redact(ref, [records[1]?.id ?? ""], { reason: "kit" });
      assert.deepEqual(await hitsAt(store, 2), []);
      assert.deepEqual(await hitsAt(store, 3), [`${ref.key}#3`]);
      const { fromSeq, toSeq } = await rangeOf(store, ref);
      assert.deepEqual([fromSeq, toSeq, (await pendingOf(store)).records], [2, 2, 1]);
      assert.equal(await facetOf(store).put(ref, { ...putOf(await rangeOf(store, ref)), vectors: [] }), true);
      assert.equal((await pendingOf(store)).records, 0);
      await store.append(ref, [userDraft("five")]);
      assert.equal((await rangeOf(store, ref)).coveredSeq, 4);
    },
  },
  {
    id: "vectors/redacted-text",
    demand: "a redaction of texts inside of a record deletes its vectors",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 2);
      await fill(store, ref);
      const records = await readRecords(store, ref);
      await store.redact(ref, [records[1]?.id ?? ""], { reason: "kit", texts: ["says"] });
      assert.deepEqual([await hitsAt(store, 2), await hitsAt(store, 1)], [[], [`${ref.key}#1`]]);
    },
  },
  {
    id: "vectors/purged",
    demand: "a purge deletes the vectors of the session",
    requires,
    async run({ under, store }) {
      const ref = await withRecords(store, "a", 3);
      const other = await withRecords(store, "b", 3);
      for (const each of [ref, other]) await fill(store, each);
      await store.remove(ref, { purge: true });
      assert.deepEqual(await hitsAt(store, 2), [`${other.key}#2`]);
      assert.equal((await pendingOf(store)).records, 0);
      await withRecords(store, "a", 1, { sessionId: "second" });
      assert.equal((await pendingOf(store)).records, 1);
      if (under.reopen === undefined) return;
      assert.deepEqual(await hitsAt(await reopened(under), 2), [`${other.key}#2`]);
    },
  },
  {
    id: "vectors/overtaken",
    demand: "a batch that was read before content was removed or the session left its address is thrown away",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 2);
      const [first] = await readRecords(store, ref);
      const before = await rangeOf(store, ref);
      await store.redact(ref, [first?.id ?? ""], { reason: "kit" });
      assert.equal(await facetOf(store).put(ref, putOf(before)), false);
      assert.deepEqual([await nearestTo(store, 1), (await pendingOf(store)).records], [[], 2]);
      const redacted = await rangeOf(store, ref);
      await store.move(ref, { kind: "archive" });
      assert.equal(await facetOf(store).put(ref, putOf(redacted)), false);
      await withRecords(store, "a", 2, { sessionId: "second" });
      assert.equal(await facetOf(store).put(ref, putOf(redacted)), false);
      const second = await rangeOf(store, ref);
      await store.remove(ref, { purge: true });
      await withRecords(store, "a", 2, { sessionId: "third" });
      assert.equal(await facetOf(store).put(ref, putOf(second)), false);
      assert.deepEqual(await nearestTo(store, 1), []);
    },
  },
  {
    id: "vectors/invalid",
    demand:
      "a vector of another length, without finite numbers, of zeros or outside of its range is refused, and nothing is kept",
    requires,
    async run({ store }) {
      const ref = await withRecords(store, "a", 2);
      const put = putOf(await rangeOf(store, ref));
      const [first] = put.vectors;
      const wrong = [
        { vector: new Float32Array(39).fill(1) },
        { vector: new Float32Array(40).fill(Number.NaN) },
        { vector: new Float32Array(40).fill(Infinity) },
        { vector: new Float32Array(40) },
        { lastSeq: 3 },
        { firstSeq: 0 },
      ];
      for (const change of wrong) {
        const vectors = [
          ...put.vectors,
          { firstSeq: 1, lastSeq: 1, part: 1, vector: vectorOf(3), ...first, ...change },
        ];
        await assertRefused(facetOf(store).put(ref, { ...put, vectors }), "INPUT_INVALID");
      }
      assert.deepEqual([await nearestTo(store, 1), (await pendingOf(store)).records], [[], 2]);
      for (const vector of [new Float32Array(39).fill(1), new Float32Array(40)])
        await assertRefused(facetOf(store).nearest({ ...scope, model, vector }), "INPUT_INVALID");
      await assertRefused(facetOf(store).pending({ namespace: "", agentId: "../main" }, { model }), "AGENT_ID_INVALID");
    },
  },
  {
    id: "vectors/another-handle",
    demand: "a handle that has searched sees what another one puts and deletes",
    requires,
    needs: ["another"],
    async run({ under, store }) {
      const ref = await withRecords(store, "a", 3);
      await fill(store, ref);
      const other = await abilityOf(under, "another")();
      assert.deepEqual(await hitsAt(other, 2), [`${ref.key}#2`]);
      const added = await withRecords(store, "b", 2);
      await fill(store, added, 20);
      assert.deepEqual(await hitsAt(other, 22), [`${added.key}#2`]);
      const records = await readRecords(store, ref);
      await store.redact(ref, [records[1]?.id ?? ""], { reason: "kit" });
      assert.deepEqual(await hitsAt(other, 2), []);
      await store.remove(added, { purge: true });
      assert.deepEqual(await hitsAt(other, 22), []);
      assert.deepEqual(await hitsAt(other, 3), [`${ref.key}#3`]);
    },
  },
];
