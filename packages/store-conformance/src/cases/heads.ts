import assert from "node:assert/strict";
import type { AppendDraft, SessionRef, SessionStore } from "@throughline/core";
import { createSession, lineOf, noteDraft, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { createXorCodec } from "../xor-codec.ts";

async function outlineOf(store: SessionStore, ref: SessionRef): Promise<unknown[]> {
  const outline: unknown[] = [];
  for await (const { records } of store.read(ref, { payload: "head" }))
    outline.push(...records.map(({ role, toolName }) => [role, toolName]));
  return outline;
}

function message(fields: Readonly<Record<string, unknown>>, more: Readonly<Record<string, unknown>> = {}): AppendDraft {
  return { type: "message", message: { content: "x", ...fields }, ...more };
}

export const headCases: readonly ConformanceCase[] = [
  {
    id: "heads/role",
    demand: "the head of a message says its role and its tool as the record spells them; of other records null",
    withoutCodec: true,
    async run({ store }) {
      const ref = await createSession(store, "a");
      const result = { role: "toolResult", toolCallId: "t1", toolName: "read file" };
      await store.append(ref, [
        message({ role: "user" }),
        message({ role: "assistant" }),
        message(result),
        message({ role: "observer", toolName: "\u65e5" }),
        noteDraft("aside"),
        { type: "compaction", summary: "s", firstKeptEntryId: "x", tokensBefore: 1, role: "user", toolName: "x" },
        { type: "acme.ticket", message: { role: "user", toolName: "x" } },
      ]);
      assert.deepEqual(await outlineOf(store, ref), [
        ["user", null],
        ["assistant", null],
        ["toolResult", "read file"],
        ["observer", "\u65e5"],
        [null, null],
        [null, null],
        [null, null],
      ]);
    },
  },
  {
    id: "heads/odd",
    demand: "what fits no column is null in the head and stays in the record",
    withoutCodec: true,
    async run({ store }) {
      const ref = await createSession(store, "a");
      const long = "x".repeat(257);
      await store.append(ref, [
        message({ role: long, toolName: long }),
        { source: lineOf("r2", '"message":{"role":7,"toolName":["x"],"content":""}', null) },
        { source: lineOf("r3", '"message":null', "r2") },
        { source: lineOf("r4", '"message":{"role":"a\\u0000b","toolName":"\\ud800"}', "r3") },
        { source: lineOf("r5", '"message":{"role":"user","content":""}', "r4") },
      ]);
      const nothing = [null, null];
      assert.deepEqual(await outlineOf(store, ref), [nothing, nothing, nothing, nothing, ["user", null]]);
    },
  },
  {
    id: "heads/redacted",
    demand: "the head of a tombstone says neither role nor tool",
    withoutCodec: true,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [message({ role: "toolResult", toolCallId: "t", toolName: "secret" }, { id: "r1" })]);
      await store.redact(ref, ["r1"], { reason: "test" });
      assert.deepEqual(await outlineOf(store, ref), [[null, null]]);
    },
  },
  {
    id: "heads/codec",
    demand: "under a codec a head says neither role nor tool",
    needs: ["codec"],
    async run({ openWithCodec }) {
      const { store } = await openWithCodec(createXorCodec());
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), message({ role: "toolResult", toolCallId: "t", toolName: "read" })]);
      assert.deepEqual(await outlineOf(store, ref), [
        [null, null],
        [null, null],
      ]);
    },
  },
];
