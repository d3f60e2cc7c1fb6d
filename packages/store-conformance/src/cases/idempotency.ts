import assert from "node:assert/strict";
import type { AppendResult, SessionRef, SessionStore } from "@throughline/core";
import {
  abilityOf,
  assertFails,
  assertRefused,
  createSession,
  numbersTo,
  readTexts,
  reopened,
  userDraft,
} from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** Creates a key that starts with the current time of the store's clock, because a store dates a key by that prefix. */
async function keyMadeNow(store: SessionStore, ref: SessionRef): Promise<string> {
  const { records } = await store.append(ref, [userDraft("probe")]);
  return `${String(records[0]?.storedAtMs).padStart(13, "0")}_00000001`;
}

export const idempotencyCases: readonly ConformanceCase[] = [
  {
    id: "idempotency/first-result-again",
    demand: "the same key with the same drafts gives the first result again and appends nothing",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const first = await store.append(ref, [userDraft("one"), userDraft("two")], { idempotencyKey: "k" });
      await store.append(ref, [userDraft("three")]);
      const again = await store.append(ref, [userDraft("one"), userDraft("two")], { idempotencyKey: "k" });
      assert.deepEqual(again, { ...first, replayed: true });
      assert.deepEqual(await readTexts(store, ref), ["one", "two", "three"]);
    },
  },
  {
    id: "idempotency/new-key",
    demand: "a key that was declared new is remembered like any other, also by a handle that is opened later",
    needs: ["reopen"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      await store.append(
        ref,
        numbersTo(3).map((each) => userDraft(String(each))),
      );
      const drafts = [userDraft("one"), userDraft("two")];
      const first = await store.append(ref, drafts, { idempotencyKey: "k", isNewKey: true });
      const entry = { label: "x" };
      const alone = await store.append(ref, [], { idempotencyKey: "e", isNewKey: true, entry });
      assert.deepEqual([first.replayed, alone.replayed], [false, false]);
      const repeat = async (handle: SessionStore): Promise<void> => {
        assert.deepEqual(await handle.append(ref, drafts, { idempotencyKey: "k" }), { ...first, replayed: true });
        assert.equal((await handle.append(ref, [], { idempotencyKey: "e", entry })).replayed, true);
        await assertRefused(handle.append(ref, [userDraft("x")], { idempotencyKey: "k" }), "IDEMPOTENCY_MISMATCH");
        assert.deepEqual(await readTexts(handle, ref), [...numbersTo(3).map(String), "one", "two"]);
      };
      await repeat(store);
      await repeat(await reopened(under));
    },
  },
  {
    id: "idempotency/before-expect",
    demand: "a retry is recognized although the head it expects has moved, by itself",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const options = { idempotencyKey: "k", expect: { head: null } };
      await store.append(ref, [userDraft("one", { id: "r1" })], options);
      assert.equal((await store.append(ref, [userDraft("one", { id: "r1" })], options)).replayed, true);
    },
  },
  {
    id: "idempotency/other-content",
    demand: "the same key with other drafts is refused",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")], { idempotencyKey: "k" });
      await assertRefused(store.append(ref, [userDraft("other")], { idempotencyKey: "k" }), "IDEMPOTENCY_MISMATCH");
      assert.deepEqual(await readTexts(store, ref), ["one"]);
    },
  },
  {
    id: "idempotency/per-session",
    demand: "a key means nothing in another session",
    async run({ store }) {
      const [one, two] = [await createSession(store, "a"), await createSession(store, "b")];
      await store.append(one, [userDraft("one")], { idempotencyKey: "k" });
      const { replayed } = await store.append(two, [userDraft("one")], { idempotencyKey: "k" });
      assert.equal(replayed, false);
      assert.deepEqual(await readTexts(store, two), ["one"]);
    },
  },
  {
    id: "idempotency/refused-is-forgotten",
    demand: "a refused append does not use up its key",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      await assertRefused(
        store.append(ref, [userDraft("two")], { idempotencyKey: "k", expect: { head: "x" } }),
        "APPEND_CONFLICT",
      );
      const { replayed } = await store.append(ref, [userDraft("two")], { idempotencyKey: "k", expect: { head: "r1" } });
      assert.equal(replayed, false);
      assert.deepEqual(await readTexts(store, ref), ["one", "two"]);
    },
  },
  {
    id: "idempotency/at-once",
    demand: "the same keyed append made many times at once is there once",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const results = await Promise.all(
        numbersTo(8).map(() => store.append(ref, [userDraft("one")], { idempotencyKey: "k" })),
      );
      assert.equal(results.filter(({ replayed }) => !replayed).length, 1);
      assert.equal(new Set(results.map(({ records }) => records[0]?.id)).size, 1);
      assert.deepEqual(await readTexts(store, ref), ["one"]);
    },
  },
  {
    id: "idempotency/entry-once",
    demand: "a retry does not write its entry patch again",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")], { idempotencyKey: "k", entry: { label: "first" } });
      const { revision } = await store.append(ref, [], { entry: { label: "second" } });
      await store.append(ref, [userDraft("one")], { idempotencyKey: "k", entry: { label: "first" } });
      const state = await store.load(ref);
      assert.deepEqual([state?.entry.label, state?.revision], ["second", revision]);
    },
  },
  {
    id: "idempotency/key-form",
    demand: "a key is text of 1 to 256 characters",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")], { idempotencyKey: "k".repeat(256) });
      await assertRefused(store.append(ref, [userDraft("two")], { idempotencyKey: "k".repeat(257) }), "INPUT_INVALID");
      await assertRefused(store.append(ref, [userDraft("two")], { idempotencyKey: "" }), "INPUT_INVALID");
    },
  },
  {
    id: "idempotency/reopen",
    demand: "keys are remembered when the store is opened again",
    requires: ({ persistent }) => persistent,
    needs: ["reopen"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const first = await store.append(ref, [userDraft("one")], { idempotencyKey: "k" });
      const later = await reopened(under);
      assert.deepEqual(await later.append(ref, [userDraft("one")], { idempotencyKey: "k" }), {
        ...first,
        replayed: true,
      });
      await assertRefused(later.append(ref, [userDraft("two")], { idempotencyKey: "k" }), "IDEMPOTENCY_MISMATCH");
      assert.deepEqual(await readTexts(later, ref), ["one"]);
    },
  },
  {
    id: "idempotency/remembered",
    demand: "as many keyed appends are remembered as declared, also after a day",
    needs: ["advanceClock"],
    // The case needs thousands of appends to exceed the key limit. Other cases cover codecs.
    withoutCodec: true,
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const count = store.capabilities.idempotency.rememberedAppends;
      const durability = store.capabilities.durabilities[0] ?? "none";
      for (const each of numbersTo(count)) {
        await store.append(ref, [userDraft(`n${each}`)], { idempotencyKey: `k${each}`, durability });
        if (each === 1) abilityOf(under, "advanceClock")(2 * dayMs);
      }
      assert.equal((await store.append(ref, [userDraft("n1")], { idempotencyKey: "k1", durability })).replayed, true);
    },
  },
  {
    id: "idempotency/without-records",
    demand: "keyed appends without records are remembered as those with records; an older key is refused",
    needs: ["advanceClock"],
    // The case needs thousands of appends to exceed the key limit. Other cases cover codecs.
    withoutCodec: true,
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const count = store.capabilities.idempotency.rememberedAppends;
      const durability = store.capabilities.durabilities[0] ?? "none";
      const append = (label: string, idempotencyKey: string): Promise<AppendResult> =>
        store.append(ref, [], { entry: { label }, idempotencyKey, durability });
      const oldKey = await keyMadeNow(store, ref);
      await append("old", oldKey);
      for (const each of numbersTo(count)) {
        if (each <= 2) abilityOf(under, "advanceClock")(2 * dayMs);
        await append(`n${each}`, `k${each}`);
      }
      assert.equal((await append("n1", "k1")).replayed, true);
      await assertExpired(append("old", oldKey));
      assert.equal((await store.load(ref))?.entry["label"], `n${count}`);
    },
  },
  {
    id: "idempotency/expired",
    demand: "a key older than what is remembered is refused, never appended again",
    needs: ["advanceClock"],
    // The case needs thousands of appends to exceed the key limit. Other cases cover codecs.
    withoutCodec: true,
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const durability = store.capabilities.durabilities[0] ?? "none";
      const oldKey = await keyMadeNow(store, ref);
      await store.append(ref, [userDraft("old")], { idempotencyKey: oldKey, durability });
      abilityOf(under, "advanceClock")(store.capabilities.idempotency.rememberedMs + dayMs);
      for (const each of numbersTo(store.capabilities.idempotency.rememberedAppends + 1)) {
        await store.append(ref, [userDraft(`n${each}`)], { idempotencyKey: `k${each}`, durability });
      }
      await assertExpired(store.append(ref, [userDraft("old")], { idempotencyKey: oldKey, durability }));
    },
  },
];

/** Asserts that the outcome is unknown, because the store no longer remembers whether the first attempt was applied. */
async function assertExpired(append: Promise<unknown>): Promise<void> {
  const error = await assertFails(append, "IDEMPOTENCY_EXPIRED");
  assert.equal(error.outcome, "unknown", "nobody knows whether the first attempt was applied");
}
