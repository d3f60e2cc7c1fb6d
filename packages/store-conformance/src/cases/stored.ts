import assert from "node:assert/strict";
import { throughlineKind } from "@throughline/core/internal";
import type { AppendDraft, AppendOptions, AppendResult } from "@throughline/core";
import { assertRefused, createSession, lineOf, noteDraft, readRecords, seqsOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const stored = { return: "stored" } as const;

/** Covers every kind of draft and of storage: canonical, sourced, side records, and lines that are not JSON. */
function mixedDrafts(): AppendDraft[] {
  const meaning = { ...userDraft("meant", { id: "r4", parentId: "r3" }), timestamp: "2026-01-02T03:04:05.006Z" };
  return [
    userDraft("one"),
    noteDraft("aside"),
    { source: lineOf("r3", '"n":1.0,"message":{"role":"user","content":"\\u00e9"}') },
    { source: "not JSON \u2028 at all", record: meaning },
    userDraft("two \u2028 \ud83d\ude00", { extra: { deep: [1, null, { a: "b" }] } }),
    userDraft("branch", { parentId: null, appendMode: "side" }),
  ];
}

export const storedCases: readonly ConformanceCase[] = [
  {
    id: "stored/as-read",
    demand: "an append that is asked for its records gives them exactly as a read does",
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const drafts of [[userDraft("first")], mixedDrafts(), [userDraft("x".repeat(300_000).slice(0, 100_000))]]) {
        const result = await store.append(ref, drafts, stored);
        const read = await readRecords(store, ref, { afterSeq: (result.records[0]?.seq ?? 1) - 1 });
        assert.deepEqual(result.stored, read);
        assert.deepEqual(seqsOf(result.stored ?? []), seqsOf(result.records));
      }
    },
  },
  {
    id: "stored/own",
    demand: "the records belong to the caller: neither its drafts nor the store change with them",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const message = { role: "user", content: [{ type: "text", text: "one" }] };
      const result = await store.append(ref, [{ type: "message", message }], stored);
      // The case changes the caller's record despite its readonly type, to show whether the store shares it.
      const record = result.stored?.[0]?.record as unknown as { message: { content: { text: string }[] } };
      (record.message.content[0] as { text: string }).text = "changed";
      assert.equal(message.content[0]?.text, "one", "the draft");
      assert.match(JSON.stringify(await readRecords(store, ref)), /"one"/);
    },
  },
  {
    id: "stored/not-asked",
    demand: "an append that is not asked for its records does not give them",
    async run({ store }) {
      const ref = await createSession(store, "a");
      assert.equal("stored" in (await store.append(ref, [userDraft("one")])), false);
    },
  },
  {
    id: "stored/replayed",
    demand: "a repeated append gives the records as they are now",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const append = (options: AppendOptions = stored): Promise<AppendResult> =>
        store.append(ref, [userDraft("one", { id: "r1" }), userDraft("two", { id: "r2" })], {
          ...options,
          idempotencyKey: "k",
        });
      const first = await append({});
      await store.append(ref, [userDraft("three")]);
      const again = await append();
      assert.deepEqual([again.replayed, again.records], [true, first.records]);
      assert.deepEqual(again.stored, (await readRecords(store, ref)).slice(0, 2));
      await store.redact(ref, ["r1"], { reason: "test" });
      const kinds = (await append()).stored?.map(({ record }) => throughlineKind(record));
      assert.deepEqual(kinds, ["redaction", null]);
    },
  },
  {
    id: "stored/none",
    demand: "an append without records that is asked for them gives an empty list",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      assert.deepEqual((await store.append(ref, [], { ...stored, entry: { label: "x" } })).stored, []);
    },
  },
  {
    id: "stored/refused",
    demand: "an append that asks for anything else is refused",
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const asked of ["records", true, null, ""])
        await assertRefused(store.append(ref, [userDraft("one")], { return: asked as "stored" }), "INPUT_INVALID");
      assert.deepEqual(await readRecords(store, ref), []);
    },
  },
];
