import assert from "node:assert/strict";
import { throughlineKind } from "@throughline/core/internal";
import {
  assertRefused,
  createSession,
  noteDraft,
  readRecords,
  readSources,
  readTexts,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

export const redactCases: readonly ConformanceCase[] = [
  {
    id: "redact/tombstone",
    demand: "a redacted record keeps seq, id and parent, and nothing of what it said",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [
        userDraft("one", { id: "r1" }),
        userDraft("secret", { id: "r2" }),
        userDraft("three", { id: "r3" }),
      ]);
      assert.deepEqual(await store.redact(ref, ["r2"], { reason: "asked for" }), { seqs: [2] });
      const records = await readSources(store, ref);
      assert.deepEqual(
        records.map(({ seq, id, parentId }) => [seq, id, parentId]),
        [
          [1, "r1", null],
          [2, "r2", "r1"],
          [3, "r3", "r2"],
        ],
      );
      assert.equal(throughlineKind(records[1]?.record ?? {}), "redaction");
      assert.doesNotMatch(JSON.stringify(records), /secret/);
      assert.match(JSON.stringify(records[1]), /asked for/);
    },
  },
  {
    id: "redact/message-count",
    demand: "a redacted message counts no more, in a state and in a list, and other records count as before",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r2" }), noteDraft("three")]);
      const counts = async (): Promise<readonly unknown[]> => {
        const [listed] = (await store.list()).sessions;
        return [(await store.load(ref))?.messageCount, listed?.messageCount, listed?.head.lastSeq];
      };
      assert.deepEqual(await counts(), [2, 2, 3]);
      await store.redact(ref, ["r2"], { reason: "test" });
      assert.deepEqual(await counts(), [1, 1, 3]);
      await store.redact(ref, ["r2"], { reason: "again" });
      await store.append(ref, [userDraft("four")]);
      assert.deepEqual(await counts(), [2, 2, 4]);
    },
  },
  {
    id: "redact/source",
    demand: "the line of an imported record goes too",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const meaning = userDraft("secret", { id: "r1", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" });
      await store.append(ref, [{ source: "secret, not even JSON", record: meaning }]);
      await store.redact(ref, ["r1"], { reason: "test" });
      const [record] = await readSources(store, ref);
      assert.doesNotMatch(`${JSON.stringify(record)}${String(record?.source)}`, /secret/);
    },
  },
  {
    id: "redact/unknown-id",
    demand: "one unknown id refuses the whole redaction",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      await assertRefused(store.redact(ref, ["r1", "r9"], { reason: "test" }), "RECORD_NOT_FOUND");
      assert.deepEqual(await readTexts(store, ref), ["one"]);
    },
  },
  {
    id: "redact/head-stays",
    demand: "redaction moves no head and makes no main record a side record",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [
        userDraft("one", { id: "r1" }),
        userDraft("two", { id: "r2" }),
        { ...noteDraft("aside"), id: "r3" },
      ]);
      const before = (await store.load(ref))?.head;
      await store.redact(ref, ["r2", "r3"], { reason: "test" });
      assert.deepEqual((await store.load(ref))?.head, before);
      assert.deepEqual(
        (await readRecords(store, ref)).map(({ side }) => side),
        [false, false, true],
      );
    },
  },
  {
    id: "redact/again",
    demand: "redacting a tombstone again leaves it as it is",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" }), { type: "compaction", summary: "one", id: "r2" }]);
      await store.redact(ref, ["r1", "r2"], { reason: "first" });
      const before = await readSources(store, ref);
      await store.redact(ref, ["r1", "r2"], { reason: "second" });
      assert.deepEqual(await readSources(store, ref), before);
    },
  },
  {
    id: "redact/look-alike",
    demand: "a record with content that calls itself redacted is redacted, too",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const data = { reason: "r", redactedAtMs: 1, originalType: "compaction", originalBytes: 1, side: false };
      const tombstone = { type: "custom", customType: "throughline.redaction", v: 1, critical: false };
      await store.append(ref, [
        { type: "compaction", summary: "secret", data, id: "r1" },
        { ...tombstone, data: { ...data, text: "secret" }, id: "r2" },
        { ...tombstone, data: { ...data, reason: ["secret"] }, id: "r3" },
        { ...tombstone, data: { ...data, originalType: "message" }, text: "secret", id: "r4" },
      ]);
      await store.redact(ref, ["r1", "r2", "r3", "r4"], { reason: "test" });
      assert.doesNotMatch(JSON.stringify(await readSources(store, ref)), /secret/);
    },
  },
  {
    id: "redact/archived",
    demand: "an archived session can be redacted",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("secret", { id: "r1" })]);
      const archived = await store.move(ref, { kind: "archive" });
      await store.redact(archived.ref, ["r1"], { reason: "test" });
      assert.doesNotMatch(JSON.stringify(await readSources(store, archived.ref)), /secret/);
    },
  },
  {
    id: "redact/id-stays-taken",
    demand: "the id of a redacted record is not free, and its key still answers",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const first = await store.append(ref, [userDraft("one", { id: "r1" })], { idempotencyKey: "k" });
      await store.redact(ref, ["r1"], { reason: "test" });
      await assertRefused(store.append(ref, [userDraft("two", { id: "r1" })]), "RECORD_ID_TAKEN");
      assert.deepEqual(
        (await store.append(ref, [userDraft("one", { id: "r1" })], { idempotencyKey: "k" })).records,
        first.records,
      );
    },
  },
  {
    id: "redact/files",
    demand: "what was redacted stands in no file any more",
    needs: ["files"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("record-secret", { id: "r2" })], { idempotencyKey: "k" });
      await store.redact(ref, ["r2"], { reason: "test" });
      for (const file of (await under.files?.()) ?? [])
        assert.doesNotMatch(Buffer.from(file).toString("latin1"), /record-secret/);
    },
  },
];
