import assert from "node:assert/strict";
import type { AppendOptions, TurnRequest } from "@throughline/core";
import { assertRefused, createSession, nowMs, readRecords, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const hourMs = 60 * 60 * 1000;

function opening(fence: number, names: { readonly turnId?: string; readonly owner?: string } = {}): TurnRequest {
  return { action: "open", turnId: "turn", owner: "owner", leaseUntilMs: nowMs() + hourMs, fence, ...names };
}

/** What some database refuses, and what does not come back from UTF-8 as it went in. */
const oddTexts: readonly string[] = ["nul \0", "line\nfeed", "high \ud800 half", "\udc00 low half", ""];

export const refusalCases: readonly ConformanceCase[] = [
  {
    id: "refusals/order",
    demand: "of several reasons the first is named: drafts, no session, archived, key, turn, head, id taken",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })], { idempotencyKey: "used" });
      await store.append(ref, [], { turn: opening(1) });
      const archived = await store.move(await createSession(store, "b"), { kind: "archive" });
      const [wrong, taken] = [{ type: "" }, userDraft("two", { id: "r1" })];
      const used: AppendOptions = { idempotencyKey: "used", turn: opening(2), expect: { head: "x" } };
      await assertRefused(store.append(refOf("nobody"), [wrong], used), "RECORD_INVALID");
      await assertRefused(store.append(refOf("nobody"), [taken], used), "SESSION_NOT_FOUND");
      await assertRefused(store.append(archived.ref, [wrong], used), "RECORD_INVALID");
      await assertRefused(store.append(archived.ref, [taken], used), "SESSION_ARCHIVED");
      await assertRefused(store.append(ref, [wrong], used), "RECORD_INVALID");
      await assertRefused(store.append(ref, [taken], used), "IDEMPOTENCY_MISMATCH");
      const fresh = { ...used, idempotencyKey: "new" };
      await assertRefused(store.append(ref, [taken], fresh), "SESSION_BUSY");
      await assertRefused(
        store.append(ref, [taken], { ...fresh, turn: { action: "within", fence: 9 } }),
        "TURN_FENCED",
      );
      const within = { ...fresh, turn: { action: "within", fence: 1 } } as const;
      await assertRefused(store.append(ref, [taken], within), "APPEND_CONFLICT");
      await assertRefused(store.append(ref, [taken], { ...within, expect: { head: "r1" } }), "RECORD_ID_TAKEN");
      assert.equal((await readRecords(store, ref)).length, 1);
    },
  },
  {
    id: "refusals/odd-ids",
    demand: "a record id with a control character or half a character is refused, for an imported line too",
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const id of oddTexts) {
        await assertRefused(store.append(ref, [userDraft("one", { id })]), "RECORD_INVALID");
        const record = { type: "message", id, parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
        await assertRefused(store.append(ref, [{ source: "a line", record }]), "RECORD_INVALID");
        await assertRefused(store.append(ref, [{ source: JSON.stringify(record) }]), "RECORD_INVALID");
      }
      assert.deepEqual(await readRecords(store, ref), []);
    },
  },
  {
    id: "refusals/odd-turns",
    demand: "a turn's id or owner with a control character or half a character is refused",
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const text of oddTexts) {
        await assertRefused(
          store.append(ref, [userDraft("one")], { turn: opening(1, { turnId: text }) }),
          "INPUT_INVALID",
        );
        await assertRefused(
          store.append(ref, [userDraft("one")], { turn: opening(1, { owner: text }) }),
          "INPUT_INVALID",
        );
      }
      const head = (await store.load(ref))?.head;
      assert.deepEqual([head?.lastSeq, head?.fence, head?.turn], [0, 0, null]);
    },
  },
  {
    id: "refusals/odd-keys",
    demand: "an idempotency key with a control character or half a character is refused",
    async run({ store }) {
      const ref = await createSession(store, "a");
      for (const idempotencyKey of oddTexts)
        await assertRefused(store.append(ref, [userDraft("one")], { idempotencyKey }), "INPUT_INVALID");
      assert.deepEqual(await readRecords(store, ref), []);
    },
  },
];
