import assert from "node:assert/strict";
import type { SessionStore } from "@throughline/core";
import { monotonicMs, systemClock } from "@throughline/core/internal";
import { abilityOf, assertFails, assertRefused, createSession, readTexts, reopened, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

type Exclusively = NonNullable<SessionStore["exclusively"]>;

const main = { namespace: "", agentId: "main" };
const patient = { timeoutMs: 20_000, pollIntervalMs: 5 };

function lockOf(store: SessionStore): Exclusively {
  const { exclusively } = store;
  assert.ok(exclusively !== undefined, "another handle of the store has the lock too");
  return exclusively.bind(store);
}

/** Takes the lock and keeps it until `end` is called. `done` settles with the call. */
async function held(
  exclusively: Exclusively,
  agent = main,
): Promise<{ readonly end: () => void; readonly done: Promise<string> }> {
  const begun = Promise.withResolvers<void>();
  const ending = Promise.withResolvers<void>();
  const done = exclusively(
    agent,
    async () => {
      begun.resolve();
      await ending.promise;
      return "done";
    },
    patient,
  );
  await Promise.race([begun.promise, done]);
  // A case that fails before it awaits `done` must not end the test process with an unhandled rejection.
  done.catch(() => undefined);
  return { end: () => ending.resolve(), done };
}

/** Asserts that no two of the calls run at once. */
async function assertOneAtATime(locks: readonly Exclusively[]): Promise<void> {
  let running = 0;
  let most = 0;
  const results = await Promise.all(
    locks.map((exclusively, index) =>
      exclusively(
        main,
        async () => {
          running += 1;
          most = Math.max(most, running);
          await systemClock.sleep(15);
          running -= 1;
          return index;
        },
        patient,
      ),
    ),
  );
  assert.equal(most, 1, "two holders ran at once");
  assert.deepEqual(results, [...locks.keys()], "each call gives what its work gave");
}

async function assertFree(exclusively: Exclusively, agent = main): Promise<void> {
  const work = (): Promise<string> => Promise.resolve("in");
  assert.equal(await exclusively(agent, work, { timeoutMs: 2000, pollIntervalMs: 5 }), "in");
}

export const exclusivelyCases: readonly ConformanceCase[] = [
  {
    id: "exclusively/one-at-a-time",
    demand: "of several calls on one handle the work of one runs at a time, and each gives its own result",
    needs: ["exclusively"],
    withoutCodec: true,
    async run({ store }) {
      const exclusively = lockOf(store);
      await assertOneAtATime([exclusively, exclusively, exclusively, exclusively]);
    },
  },
  {
    id: "exclusively/handles",
    demand: "handles of one store exclude each other",
    needs: ["exclusively", "another"],
    withoutCodec: true,
    async run({ store, under }) {
      const other = await abilityOf(under, "another")();
      await assertOneAtATime([lockOf(store), lockOf(other), lockOf(store), lockOf(other)]);
    },
  },
  {
    id: "exclusively/agents",
    demand: "each agent of each namespace has a lock of its own; without a name it is that of main",
    needs: ["exclusively"],
    withoutCodec: true,
    async run({ store }) {
      const exclusively = lockOf(store);
      const holder = await held(exclusively);
      await assertFree(exclusively, { namespace: "", agentId: "other" });
      await assertFree(exclusively, { namespace: "other", agentId: "main" });
      const none = (): Promise<never> => Promise.reject(new Error("the lock of main was free"));
      await assertRefused(exclusively({}, none, { timeoutMs: 20, pollIntervalMs: 5 }), "STORE_LOCKED");
      holder.end();
      assert.equal(await holder.done, "done");
    },
  },
  {
    id: "exclusively/timeout",
    demand: "who has waited for the given time is refused with STORE_LOCKED, and the work is not begun",
    needs: ["exclusively"],
    withoutCodec: true,
    async run({ store }) {
      const exclusively = lockOf(store);
      const holder = await held(exclusively);
      let isBegun = false;
      const work = async (): Promise<void> => void (isBegun = true);
      const beganMs = monotonicMs();
      await assertRefused(exclusively(main, work, { timeoutMs: 120, pollIntervalMs: 5 }), "STORE_LOCKED");
      const waitedMs = monotonicMs() - beganMs;
      assert.ok(waitedMs >= 100 && waitedMs < 5000, `refused after ${waitedMs} ms of 120`);
      await assertRefused(exclusively(main, work, { timeoutMs: 0, pollIntervalMs: 5 }), "STORE_LOCKED");
      assert.equal(isBegun, false);
      holder.end();
      await holder.done;
      await assertFree(exclusively);
    },
  },
  {
    id: "exclusively/abort",
    demand:
      "a signal ends the wait with ABORTED, before it begins too; the holder keeps the lock, and it is free afterwards",
    needs: ["exclusively"],
    withoutCodec: true,
    async run({ store }) {
      const exclusively = lockOf(store);
      const holder = await held(exclusively);
      let isBegun = false;
      const work = async (): Promise<void> => void (isBegun = true);
      const controller = new AbortController();
      const waiting = exclusively(main, work, {
        timeoutMs: 6000,
        pollIntervalMs: 10_000,
        signal: controller.signal,
      });
      const failing = assertRefused(waiting, "ABORTED");
      failing.catch(() => undefined);
      await systemClock.sleep(30);
      const abortedMs = monotonicMs();
      controller.abort();
      await failing;
      const tookMs = monotonicMs() - abortedMs;
      assert.ok(tookMs < 5000, `the wait went on for ${tookMs} ms`);
      await assertRefused(exclusively(main, work, { timeoutMs: 30, pollIntervalMs: 5 }), "STORE_LOCKED");
      holder.end();
      assert.equal(await holder.done, "done");
      await assertRefused(exclusively(main, work, { ...patient, signal: controller.signal }), "ABORTED");
      assert.equal(isBegun, false);
      await assertFree(exclusively);
    },
  },
  {
    id: "exclusively/throws",
    demand: "an error of the work comes through as it is, and frees the lock",
    needs: ["exclusively"],
    withoutCodec: true,
    async run({ store }) {
      const exclusively = lockOf(store);
      const mine = new Error("mine");
      const thrown: unknown = await exclusively(main, () => Promise.reject(mine), patient).catch(
        (error: unknown) => error,
      );
      assert.equal(thrown, mine);
      await assertFree(exclusively);
      const atOnce = (): Promise<never> => {
        throw mine;
      };
      assert.equal(await exclusively(main, atOnce, patient).catch((error: unknown) => error), mine);
      await assertFree(exclusively);
    },
  },
  {
    id: "exclusively/operations",
    demand: "operations of the store do not wait for the lock, under it and beside it",
    needs: ["exclusively", "another"],
    withoutCodec: true,
    async run({ store, under }) {
      const other = await abilityOf(under, "another")();
      const ref = await createSession(store, "a");
      await lockOf(store)(
        main,
        async () => {
          await store.append(ref, [userDraft("under the lock")]);
          await other.append(ref, [userDraft("beside it")]);
        },
        patient,
      );
      assert.deepEqual(await readTexts(store, ref), ["under the lock", "beside it"]);
    },
  },
  {
    id: "exclusively/killed",
    demand: "the lock of a process that is killed is free at once, not after a lease",
    needs: ["exclusively", "holdElsewhere"],
    withoutCodec: true,
    async run({ store, under }) {
      const exclusively = lockOf(store);
      const elsewhere = await abilityOf(under, "holdElsewhere")(main);
      const none = (): Promise<never> => Promise.reject(new Error("the lock was free"));
      await assertRefused(exclusively(main, none, { timeoutMs: 50, pollIntervalMs: 5 }), "STORE_LOCKED");
      await elsewhere.kill();
      const killedMs = monotonicMs();
      assert.equal(await exclusively(main, () => Promise.resolve("in"), { ...patient, timeoutMs: 6000 }), "in");
      const waitedMs = monotonicMs() - killedMs;
      assert.ok(waitedMs < 5000, `the next holder waited for ${waitedMs} ms`);
    },
  },
  {
    id: "exclusively/closed",
    demand: "a closed handle takes no lock, and closing leaves none behind",
    needs: ["exclusively", "reopen"],
    withoutCodec: true,
    async run({ store, under }) {
      const exclusively = lockOf(store);
      await assertFree(exclusively);
      const again = await reopened(under);
      await assertFails(
        exclusively(main, () => Promise.resolve("in"), patient),
        "STORE_CLOSED",
      );
      await assertFree(lockOf(again));
    },
  },
  {
    id: "exclusively/arguments",
    demand: "an invalid function, time, signal or agent is refused by its name, and the lock stays free",
    needs: ["exclusively"],
    withoutCodec: true,
    async run({ store }) {
      const exclusively = lockOf(store);
      const work = (): Promise<string> => Promise.resolve("in");
      const wrong: readonly (readonly [unknown, unknown, string])[] = [
        ["in", patient, "work"],
        [work, { ...patient, timeoutMs: Number.NaN }, "timeoutMs"],
        [work, { ...patient, timeoutMs: -1 }, "timeoutMs"],
        [work, { ...patient, pollIntervalMs: 0 }, "pollIntervalMs"],
        [work, { ...patient, pollIntervalMs: "5" }, "pollIntervalMs"],
        [work, undefined, "options"],
        [work, { ...patient, signal: {} }, "signal"],
      ];
      for (const [given, options, name] of wrong) {
        const { message } = await assertRefused(
          exclusively(main, given as typeof work, options as typeof patient),
          "INPUT_INVALID",
        );
        assert.ok(message.includes(name), `${message} does not name ${name}`);
      }
      await assertRefused(exclusively({ agentId: "../x" }, work, patient), "AGENT_ID_INVALID");
      await assertRefused(exclusively({ namespace: "a b" }, work, patient), "NAMESPACE_INVALID");
      await assertFree(exclusively);
    },
  },
];
