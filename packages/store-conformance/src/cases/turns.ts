import assert from "node:assert/strict";
import {
  assertRefused,
  createSession,
  noteDraft,
  nowMs,
  readTexts,
  refOf,
  reopened,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import type { TurnRequest } from "@throughline/core";

const hourMs = 60 * 60 * 1000;

function opening(fence: number, leaseMs: number = hourMs): TurnRequest {
  return { action: "open", turnId: `turn-${fence}`, owner: `owner-${fence}`, leaseUntilMs: nowMs() + leaseMs, fence };
}

export const turnCases: readonly ConformanceCase[] = [
  {
    id: "turns/open-and-close",
    demand: "an open turn stands in the head until it is closed; the fence stays",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const turn = opening(1);
      const { head } = await store.append(ref, [userDraft("one")], { turn });
      assert.deepEqual(
        [head.fence, head.turn?.turnId, head.turn?.owner, head.turn?.fence],
        [1, "turn-1", "owner-1", 1],
      );
      assert.deepEqual((await store.load(ref))?.head, head);
      await store.append(ref, [userDraft("two")], { turn: { action: "within", fence: 1 } });
      await store.append(ref, [], { turn: { action: "close", fence: 1 }, entry: { label: "done" } });
      const closed = (await store.load(ref))?.head;
      assert.deepEqual([closed?.fence, closed?.turn], [1, null]);
      await store.append(ref, [userDraft("three")], { turn: opening(2) });
    },
  },
  {
    id: "turns/busy",
    demand: "while a turn is open another is refused, and told who holds it until when",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { head } = await store.append(ref, [userDraft("one")], { turn: opening(1) });
      const error = await assertRefused(store.append(ref, [userDraft("two")], { turn: opening(2) }), "SESSION_BUSY");
      assert.deepEqual([error.details["owner"], error.details["leaseUntilMs"]], ["owner-1", head.turn?.leaseUntilMs]);
      assert.equal(error.retryable, true);
      assert.deepEqual(await readTexts(store, ref), ["one"]);
    },
  },
  {
    id: "turns/outsiders",
    demand: "while a turn is open a main record from outside is refused, a side record passes",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")], { turn: opening(1) });
      await assertRefused(store.append(ref, [userDraft("two")]), "SESSION_BUSY");
      await store.append(ref, [noteDraft("background")]);
      assert.equal((await store.load(ref))?.head.lastSeq, 2);
    },
  },
  {
    id: "turns/lease-run-out",
    demand: "a turn whose lease has run out can be taken over",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")], { turn: opening(1, -hourMs) });
      const { head } = await store.append(ref, [userDraft("two")], { turn: opening(2) });
      assert.deepEqual([head.fence, head.turn?.owner], [2, "owner-2"]);
    },
  },
  {
    id: "turns/fenced-off",
    demand: "whoever comes back after a takeover is refused, whatever he wants",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")], { turn: opening(1, -hourMs) });
      await store.append(ref, [userDraft("two")], { turn: opening(2) });
      for (const action of ["within", "close"] as const) {
        await assertRefused(store.append(ref, [userDraft("late")], { turn: { action, fence: 1 } }), "TURN_FENCED");
      }
      await assertRefused(
        store.append(ref, [noteDraft("late")], { turn: { action: "renew", fence: 1, leaseUntilMs: nowMs() + hourMs } }),
        "TURN_FENCED",
      );
      assert.deepEqual(await readTexts(store, ref), ["one", "two"]);
      assert.equal((await store.load(ref))?.head.turn?.turnId, "turn-2");
    },
  },
  {
    id: "turns/next-fence",
    demand: "a turn opens with the next fence and no other",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(store.append(ref, [userDraft("one")], { turn: opening(2) }), "TURN_FENCED");
      await assertRefused(
        store.append(ref, [userDraft("one")], { turn: { action: "within", fence: 0 } }),
        "TURN_FENCED",
      );
      await store.append(ref, [userDraft("one")], { turn: opening(1, -hourMs) });
      await assertRefused(store.append(ref, [userDraft("two")], { turn: opening(1) }), "TURN_FENCED");
    },
  },
  {
    id: "turns/renew",
    demand: "renewing moves the end of the lease and nothing else",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { head } = await store.append(ref, [userDraft("one")], { turn: opening(1) });
      const leaseUntilMs = nowMs() + 2 * hourMs;
      await store.append(ref, [noteDraft("still here")], { turn: { action: "renew", leaseUntilMs, fence: 1 } });
      assert.deepEqual((await store.load(ref))?.head.turn, { ...head.turn, leaseUntilMs });
    },
  },
  {
    id: "turns/one-opens",
    demand: "of several turns opened at once one is open",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const attempts = ["a", "b", "c"].map((text) => store.append(ref, [userDraft(text)], { turn: opening(1) }));
      const settled = await Promise.allSettled(attempts);
      assert.equal(settled.filter(({ status }) => status === "fulfilled").length, 1);
      assert.equal((await readTexts(store, refOf("a"))).length, 1);
    },
  },
  {
    id: "turns/reopen",
    demand: "an open turn is still open when the store is opened again",
    requires: ({ persistent }) => persistent,
    needs: ["reopen"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const { head } = await store.append(ref, [userDraft("one")], { turn: opening(1) });
      const later = await reopened(under);
      assert.deepEqual((await later.load(ref))?.head, head);
      await assertRefused(later.append(ref, [userDraft("two")], { turn: opening(2) }), "SESSION_BUSY");
    },
  },
];
