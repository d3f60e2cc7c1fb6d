import assert from "node:assert/strict";
import type {
  AppendDraft,
  AppendOptions,
  ListQuery,
  MoveAction,
  ReadOptions,
  RedactOptions,
  SessionRef,
  TurnRequest,
} from "@throughline/core";
import { assertFails, assertRefused, createSession, nowMs, readRecords, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const hourMs = 60 * 60 * 1000;

function opening(fence: number, names: { readonly turnId?: string; readonly owner?: string } = {}): TurnRequest {
  return { action: "open", turnId: "turn", owner: "owner", leaseUntilMs: nowMs() + hourMs, fence, ...names };
}

/** Some databases refuse these texts, or UTF-8 changes them. */
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
  {
    id: "refusals/odd-reads",
    demand: "an option of a read that is none of its values is refused, and not taken for another",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("two")]);
      for (const odd of oddReads) await assertFails(readRecords(store, ref, odd as ReadOptions), "INPUT_INVALID");
      assert.equal((await readRecords(store, ref, {})).length, 2);
    },
  },
  {
    id: "refusals/odd-lists",
    demand: "an option of a list that is none of its values is refused, and not taken for another",
    async run({ store }) {
      await createSession(store, "a");
      for (const odd of oddLists) await assertFails(store.list(odd as ListQuery), "INPUT_INVALID");
      assert.equal((await store.list({})).sessions.length, 1);
    },
  },
  {
    id: "refusals/odd-moves",
    demand: "a kind of move that there is none of is refused, of an archived session too",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const archived = (await store.move(await createSession(store, "b"), { kind: "archive" })).ref;
      for (const kind of ["sideways", "", "Restore", null])
        for (const at of [ref, archived])
          await assertRefused(store.move(at, { kind, key: "agent:main:c" } as MoveAction), "INPUT_INVALID");
      assert.deepEqual([(await store.load(ref))?.archived, (await store.load(archived))?.archived], [false, true]);
    },
  },
  {
    id: "refusals/odd-refs",
    demand:
      "a ref without a text for its namespace, agent or key is refused by every operation, and nothing is kept under it",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const good = await store.load(ref);
      for (const odd of oddRefs(ref)) {
        const at = odd as SessionRef;
        await assertRefused(store.save(at, { sessionId: "session-odd" }, { ifRevision: null }), "INPUT_INVALID");
        await assertRefused(store.append(at, [userDraft("one")]), "INPUT_INVALID");
        await assertFails(readRecords(store, at), "INPUT_INVALID");
        await assertFails(store.load(at), "INPUT_INVALID");
        await assertRefused(store.move(at, { kind: "archive" }), "INPUT_INVALID");
        await assertRefused(store.remove(at, { purge: true }), "INPUT_INVALID");
        await assertRefused(store.redact(at, ["x"], { reason: "test" }), "INPUT_INVALID");
        if (store.fork === undefined) continue;
        await assertRefused(store.fork.fork(at, refOf("b"), { sessionId: "session-b" }), "INPUT_INVALID");
        await assertRefused(store.fork.fork(ref, at, { sessionId: "session-b" }), "INPUT_INVALID");
      }
      const { sessions } = await store.list({});
      assert.deepEqual(sessions, [good]);
    },
  },
  {
    id: "refusals/odd-arguments",
    demand: "an argument that is none of its kind is refused as the caller's mistake, and changes nothing",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      const before = [await store.load(ref), await readRecords(store, ref)];
      const refuse = (work: Promise<unknown>): Promise<unknown> => assertRefused(work, "INPUT_INVALID");
      for (const odd of [null, 5, "text", { length: 0 }])
        await refuse(store.append(ref, odd as readonly AppendDraft[]));
      for (const odd of [null, 5, "text", {}]) {
        const signal = odd as AbortSignal;
        await refuse(store.append(ref, [userDraft("two")], { signal }));
        await assertFails(store.load(ref, { signal }), "INPUT_INVALID");
        await assertFails(readRecords(store, ref, { signal }), "INPUT_INVALID");
        await assertFails(store.list({ signal }), "INPUT_INVALID");
      }
      for (const odd of [null, 5, "text"]) {
        // Callers in plain JavaScript can pass any value.
        await refuse(store.append(ref, [userDraft("two")], { turn: odd as never }));
        await refuse(store.append(ref, [userDraft("two")], { expect: odd as never }));
        await refuse(store.move(ref, odd as never));
        await refuse(store.save(ref, { sessionId: "session-b" }, odd as never));
      }
      for (const odd of [undefined, null, 5, "r1", {}, [undefined], [null], [5], [["r1"]]])
        await refuse(store.redact(ref, odd as readonly string[], { reason: "test" }));
      for (const odd of [undefined, null, {}, { reason: 5 }])
        await refuse(store.redact(ref, ["r1"], odd as RedactOptions));
      assert.deepEqual([await store.load(ref), await readRecords(store, ref)], before);
    },
  },
];

function oddRefs(ref: SessionRef): readonly unknown[] {
  const odd = [undefined, null, 5, {}, ["a"]];
  const parts = ["namespace", "agentId", "key"].flatMap((name) => odd.map((value) => ({ ...ref, [name]: value })));
  return [...parts, ...odd.slice(1).map((archiveId) => ({ ...ref, archiveId })), undefined, null, ref.key, 5];
}

/** Plain JavaScript can pass these values. Null and "" must not count as missing. */
const oddReads: readonly object[] = [
  ...["sideways", "", "ASCENDING", null, 1].map((order) => ({ order })),
  ...["all", "", null].map((payload) => ({ payload })),
  ...["afterSeq", "beforeSeq", "limit"].flatMap((name) => [{ [name]: Number.NaN }, { [name]: "1" }, { [name]: null }]),
];

const oddLists: readonly object[] = [
  ...["sideways", "", "KEY", null, 1].map((sort) => ({ sort })),
  ...["all", "", null].map((state) => ({ state })),
  ...["sinceMs", "untilMs"].flatMap((name) => [{ [name]: Number.NaN }, { [name]: "1" }, { [name]: null }]),
  ...[0, -1, 1.5, Number.NaN, "1", null].map((limit) => ({ limit })),
  { keyPrefix: 1 },
  { keyPrefix: null },
];
