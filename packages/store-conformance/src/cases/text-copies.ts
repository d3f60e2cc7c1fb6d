import assert from "node:assert/strict";
import { type RecordDraft, redactRecords, type SessionRef, type SessionStore } from "@throughline/core";
import { throughlineDraft, throughlineKind } from "@throughline/core/internal";
import { assertRefused, createSession, readRecords, readSources, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import type { StoreUnderTest } from "../store-under-test.ts";

export const secret = "copied-secret";
const quoted = `it said: ${secret}`;

/** Creates a tool call whose argument contains the secret. */
export const callDraft: RecordDraft = {
  type: "message",
  id: "r2",
  message: {
    role: "assistant",
    content: [{ type: "toolCall", id: "call-1", name: "edit", arguments: { path: secret } }],
  },
};

/** These records may follow the secret and repeat its text. The names are those of core's table. */
export const copies: readonly (readonly [what: string, drafts: readonly RecordDraft[]])[] = [
  ["checkpoint", [{ type: "checkpoint", checkpoint: checkpointOf(quoted) }]],
  ["branch_summary", [{ type: "branch_summary", fromId: "r2", summary: quoted }]],
  ["context_edit", [{ type: "context_edit", targetId: "r2", replacement: { content: quoted } }]],
  ["throughline.edit", [throughlineDraft("edit", { targetId: "r2", replacement: { content: quoted } })]],
  ["throughline.note", [throughlineDraft("note", { kind: "summary-superseded", summaryId: "k1", summary: quoted })]],
  [
    "throughline.call",
    [throughlineDraft("call", { turnId: "t", splice: { keepStart: 0, keepEnd: 0, insert: [quoted] } })],
  ],
  ["throughline.exchange", [throughlineDraft("exchange", { api: "x", frame: [{ literal: quoted }], copies: ["r2"] })]],
  [
    "throughline.exchange error",
    [throughlineDraft("exchange", { frame: [{ first: "r1", last: "r2", count: 2 }], errorBody: quoted })],
  ],
  ["throughline.prompt", [throughlineDraft("prompt", { system: quoted, copies: ["r1", "r2"] })]],
  [
    "throughline.approval",
    [throughlineDraft("approval", { turnId: "t", callId: "call-1", tool: "edit", path: secret, decision: "once" })],
  ],
  [
    "derived record",
    [1, 2].map((index) => ({ ...userDraft(quoted, { derivedFrom: { id: "r2", index } }), id: `r2~d${index}` })),
  ],
  [
    "record of a framework",
    [{ type: "custom", customType: "acme.value", appendMode: "side", copies: ["r2"], data: { value: quoted } }],
  ],
];

function checkpointOf(summary: string): Readonly<Record<string, unknown>> {
  return { summary, tokensAtCheckpoint: 1, messageCountAtCheckpoint: 1 };
}

/** Asserts that neither the store's answers nor its files contain the secret. */
export async function assertGone(under: StoreUnderTest, store: SessionStore, ref: SessionRef): Promise<void> {
  assert.ok(!JSON.stringify(await readSources(store, ref)).includes(secret), "a record says it");
  assert.ok(!JSON.stringify(await store.load(ref)).includes(secret), "the entry says it");
  for (const file of (await under.files?.()) ?? [])
    assert.ok(!Buffer.from(file).toString("latin1").includes(secret), "a file says it");
}

const copyCases = copies.map(([what, drafts]): ConformanceCase => ({
  id: `text-copies/${what.replace(/^throughline\./, "").replaceAll(/[_ ]/g, "-")}`,
  demand: `a redaction reaches what repeats the record: ${what}`,
  async run({ under, store }) {
    const ref = await createSession(store, "a");
    await store.append(ref, [userDraft("first", { id: "r1" }), callDraft, ...drafts], { idempotencyKey: "k" });
    await store.append(ref, [userDraft("last", { id: "r9" })]);
    const { seqs } = await redactRecords(store, ref, ["r2"], { reason: "asked for" });
    assert.deepEqual(
      seqs,
      [2, ...drafts.keys().map((index) => index + 3)],
      "the record and its copies are redacted, and nothing else",
    );
    await assertGone(under, store, ref);
    const kept = (await readRecords(store, ref)).filter(({ id }) => id === "r1" || id === "r9");
    assert.equal(kept.length, 2, "the other records stay");
  },
}));

export const textCopyCases: readonly ConformanceCase[] = [
  ...copyCases,
  {
    id: "text-copies/unit",
    demand: "a redaction of a derived record reaches its whole unit, with the bytes it was read from",
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const first = { ...userDraft("one", { id: "r1", parentId: null }), timestamp: "2026-01-02T03:04:05.006Z" };
      const derived = [1, 2].map((index) => ({
        ...userDraft(index === 2 ? quoted : "two", { sourceFormat: "claude-code", derivedFrom: { id: "r1", index } }),
        id: `r1~d${index}`,
      }));
      const unit = {
        source: `{"content":["one","two","${quoted}"]}`,
        record: { ...first, sourceFormat: "claude-code" },
      };
      await store.append(ref, [unit, ...derived, userDraft("four", { id: "r4" })]);
      const { seqs } = await redactRecords(store, ref, ["r1~d2"], { reason: "asked for" });
      assert.deepEqual(
        seqs.toSorted((one, other) => one - other),
        [1, 2, 3],
      );
      await assertGone(under, store, ref);
    },
  },
  {
    id: "text-copies/compaction",
    demand: "a redaction takes the text of later compactions and leaves them in their place",
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft(secret, { id: "r1" }), userDraft("kept", { id: "r2" })]);
      const details = { v: 1, needsRetry: false, summarizedFromSeq: 1, quoted: [quoted], firstRequest: quoted };
      const compaction = { type: "compaction", summary: quoted, firstKeptEntryId: "r2", tokensBefore: 9, details };
      await store.append(ref, [{ ...compaction, id: "k1" }, userDraft("after", { id: "r4" })]);
      const { seqs } = await redactRecords(store, ref, ["r1"], { reason: "asked for" });
      assert.deepEqual(seqs, [1, 3]);
      await assertGone(under, store, ref);
      const record = (await readRecords(store, ref))[2]?.record;
      assert.deepEqual([record?.type, record?.["firstKeptEntryId"], record?.["tokensBefore"]], ["compaction", "r2", 9]);
      assert.deepEqual((await store.redact(ref, ["k1"], { reason: "again" })).seqs, [3], "it is a tombstone already");
    },
  },
  {
    id: "text-copies/earlier",
    demand: "a redaction reaches earlier records that the record names as its copies, and none that are not there",
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const write = { type: "custom", customType: "acme.write", appendMode: "side", id: "w1", data: { value: quoted } };
      await store.append(ref, [userDraft("first", { id: "r1" }), write]);
      await store.append(ref, [userDraft(secret, { id: "r2", copiedIn: ["w1", "elsewhere"] })]);
      const { seqs } = await redactRecords(store, ref, ["r2"], { reason: "asked for" });
      assert.deepEqual(
        seqs.toSorted((one, other) => one - other),
        [2, 3],
      );
      await assertGone(under, store, ref);
    },
  },
  {
    id: "text-copies/no-unit",
    demand: "a record whose id only looks like a derived one's is redacted by itself",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r1~d1" })]);
      await redactRecords(store, ref, ["r1~d1"], { reason: "asked for" });
      const kinds = (await readRecords(store, ref)).map(({ record }) => throughlineKind(record));
      assert.deepEqual(kinds.slice(0, 2), [null, "redaction"]);
    },
  },
  {
    id: "text-copies/title",
    demand: "a redaction takes fields of the entry that repeat the record, wherever they were written; the label stays",
    async run({ under, store }) {
      const ref = await createSession(store, "a", { entry: { title: quoted, titleBy: "rules", label: "mine" } });
      await store.append(ref, [userDraft(secret, { id: "r1" })], { entry: { title: `${quoted}!` } });
      await store.append(ref, [userDraft("two")], { entry: { model: "m", title: `${quoted}?` } });
      const before = await store.load(ref);
      await redactRecords(store, ref, ["r1"], { reason: "asked for" });
      const after = await store.load(ref);
      assert.deepEqual(after?.entry, { sessionId: "session-a", label: "mine", model: "m" });
      assert.equal(after.revision, (before?.revision ?? 0) + 1);
      await assertGone(under, store, ref);
    },
  },
  {
    id: "text-copies/title-of-forks",
    demand: "a redaction takes the fields out of the entries of all sessions that share the record",
    requires: ({ fork }) => fork,
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft(secret, { id: "r1" }), userDraft("two")]);
      const target = refOf("b");
      await store.fork?.fork(ref, target, { sessionId: "session-b" });
      await store.append(target, [userDraft("three")], { entry: { title: quoted, titleBy: "rules" } });
      await redactRecords(store, ref, ["r1"], { reason: "asked for" });
      const entry = (await store.load(target))?.entry;
      assert.deepEqual([entry?.title, entry?.titleBy], [undefined, undefined]);
      await assertGone(under, store, target);
    },
  },
  {
    id: "text-copies/no-title",
    demand: "a redaction of a session whose entry has none of the fields changes no revision",
    async run({ store }) {
      const ref = await createSession(store, "a", { entry: { label: "mine" } });
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      const before = await store.load(ref);
      await store.redact(ref, ["r1"], { reason: "asked for", entryFields: ["title", "titleBy"] });
      const after = await store.load(ref);
      assert.deepEqual([after?.revision, after?.entry], [before?.revision, before?.entry]);
    },
  },
  {
    id: "text-copies/fields-refused",
    demand: "a redaction takes no sessionId out of the entry, and then redacts nothing",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      await assertRefused(
        store.redact(ref, ["r1"], { reason: "asked for", entryFields: ["sessionId"] }),
        "INPUT_INVALID",
      );
      assert.equal(throughlineKind((await readRecords(store, ref))[0]?.record ?? {}), null);
    },
  },
  {
    id: "text-copies/purge",
    demand: "a purge leaves nothing of a session with all of them",
    async run({ under, store }) {
      const ref = await createSession(store, "a", { entry: { title: quoted, titleBy: "rules" } });
      await store.append(ref, [userDraft(secret, { id: "r1" }), callDraft]);
      for (const [, drafts] of copies) await store.append(ref, drafts);
      await store.remove(ref, { purge: true });
      assert.equal(await store.load(ref), null);
      for (const file of (await under.files?.()) ?? [])
        assert.ok(!Buffer.from(file).toString("latin1").includes(secret));
    },
  },
];
