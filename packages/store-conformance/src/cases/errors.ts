import assert from "node:assert/strict";
import { errorCodes } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import { abilityOf, assertFails, assertRefused, createSession, readTexts, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

export const errorCases: readonly ConformanceCase[] = [
  {
    id: "errors/typed",
    demand: "every refusal is a ThroughlineError of the table that says what happened and that nothing was applied",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one", { id: "r1" })]);
      const attempts: readonly Promise<unknown>[] = [
        store.append(refOf("nobody"), [userDraft("n")]),
        store.append(ref, [userDraft("n")], { expect: { head: "x" } }),
        store.append(ref, [userDraft("n", { id: "r1" })]),
        store.append(ref, [{ type: "" }]),
        store.save(ref, { sessionId: "session-a" }, { ifRevision: 9 }),
        store.move(refOf("nobody"), { kind: "archive" }),
        store.remove(refOf("nobody")),
        store.redact(ref, ["x"], { reason: "test" }),
      ];
      for (const { status, ...settled } of await Promise.allSettled(attempts)) {
        assert.equal(status, "rejected", "a failure is thrown, never a value");
        const error: unknown = "reason" in settled ? settled.reason : undefined;
        assert.ok(ThroughlineError.isInstance(error) && error instanceof Error, "a failure is a ThroughlineError");
        assert.ok(Object.hasOwn(errorCodes, error.code), `${error.code} stands in the table`);
        assert.equal(error.outcome, "not-applied", `${error.code} says that nothing was applied`);
        assert.ok(error.message.length > 10 && error.remedy.length > 5, "the error has a message and a remedy");
      }
    },
  },
  {
    id: "errors/unknown-outcome",
    demand: "a write whose fate is unknown says so, and its retry with the key leaves one copy",
    needs: ["failNextAppend"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      abilityOf(under, "failNextAppend")("unknown");
      const append = (): Promise<unknown> =>
        store.append(ref, [userDraft("one"), userDraft("two")], { idempotencyKey: "k" });
      const error = await append().then(
        () => assert.fail("the append succeeded"),
        (reason: unknown) => reason,
      );
      assert.ok(ThroughlineError.isInstance(error), "the failure is a ThroughlineError");
      assert.equal(error.outcome, "unknown");
      await append();
      assert.deepEqual(await readTexts(store, ref), ["one", "two"]);
    },
  },
  {
    id: "errors/not-applied-outcome",
    demand: "a write that says it was not applied left nothing",
    needs: ["failNextAppend"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      abilityOf(under, "failNextAppend")("not-applied");
      const append = store.append(ref, [userDraft("one")], { entry: { label: "x" } });
      const error: unknown = await append.then(
        () => assert.fail("the append succeeded"),
        (reason: unknown) => reason,
      );
      assert.ok(ThroughlineError.isInstance(error), "the failure is a ThroughlineError");
      assert.equal(error.outcome, "not-applied");
      assert.deepEqual([await readTexts(store, ref), (await store.load(ref))?.entry.label], [[], undefined]);
      await store.append(ref, [userDraft("two")]);
      assert.deepEqual(await readTexts(store, ref), ["two"]);
    },
  },
];

export const signalCases: readonly ConformanceCase[] = [
  {
    id: "signals/append",
    demand: "an append whose signal is aborted already is not made",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertRefused(store.append(ref, [userDraft("one")], { signal: AbortSignal.abort() }), "ABORTED");
      assert.deepEqual(await readTexts(store, ref), []);
    },
  },
  {
    id: "signals/load-and-list",
    demand: "load and list heed the signal",
    async run({ store }) {
      const ref = await createSession(store, "a");
      await assertFails(store.load(ref, { signal: AbortSignal.abort() }), "ABORTED");
      await assertFails(store.list({ signal: AbortSignal.abort() }), "ABORTED");
    },
  },
  {
    id: "signals/read",
    demand: "a read ends between two pages when its signal is aborted",
    async run({ store }) {
      const ref = await createSession(store, "a");
      const { pageRecords, batchRecords } = store.capabilities.limits;
      const drafts = Array.from({ length: Math.min(batchRecords, pageRecords) }, () => userDraft("n"));
      for (let made = 0; made <= pageRecords; made += drafts.length) await store.append(ref, drafts);
      const controller = new AbortController();
      const pages = store.read(ref, { signal: controller.signal })[Symbol.asyncIterator]();
      assert.equal((await pages.next()).done, false);
      controller.abort();
      await assertFails(pages.next(), "ABORTED");
      await assertFails(store.read(ref, { signal: AbortSignal.abort() })[Symbol.asyncIterator]().next(), "ABORTED");
    },
  },
];
