import assert from "node:assert/strict";
import type { Finding, MaintenanceFacet, SessionRef, SessionStore } from "@throughline/core";
import { assertFails, createSession, numbersTo, readTexts, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

async function allOf(findings: AsyncIterable<Finding>): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const finding of findings) found.push(finding);
  return found;
}

/** Asserts that there is no error. An intact store may report notes and warnings; an error means lost data. */
async function assertNoErrors(findings: AsyncIterable<Finding>, what: string): Promise<void> {
  const errors = (await allOf(findings)).filter(({ severity }) => severity === "error");
  assert.deepEqual(errors, [], what);
}

function facetOf(store: SessionStore): MaintenanceFacet {
  return store.maintenance ?? assert.fail("declared and not there");
}

const isMaintained: NonNullable<ConformanceCase["requires"]> = ({ maintenance }) => maintenance;

export const maintenanceCases: readonly ConformanceCase[] = [
  {
    id: "maintenance/sound",
    demand: "of a sound store there is no error to report, quick or full, and looking at it changes nothing",
    requires: isMaintained,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("two", { id: "given" })], {
        entry: { label: "x" },
        idempotencyKey: "k",
      });
      await store.redact(ref, ["given"], { reason: "a test" });
      await store.move(await createSession(store, "b"), { kind: "archive" });
      await store.fork?.fork(ref, refOf("c"), { sessionId: "c" });
      const before = [await store.load(ref), await store.list({ state: "any", sort: "key" })];
      for (const full of [false, true]) await assertNoErrors(facetOf(store).verify({ full }), `full: ${full}`);
      assert.deepEqual([await store.load(ref), await store.list({ state: "any", sort: "key" })], before);
      assert.equal((await readTexts(store, ref))[0], "one");
    },
  },
  {
    id: "maintenance/repair-of-sound",
    demand: "repairing what is sound reports no error and loses nothing",
    requires: isMaintained,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("two")], { entry: { label: "x" } });
      const before = await store.load(ref);
      await assertNoErrors(facetOf(store).repair(), "repair");
      assert.deepEqual(await store.load(ref), before);
      assert.deepEqual(await readTexts(store, ref), ["one", "two"]);
      await store.append(ref, [userDraft("three")]);
      assert.deepEqual(await readTexts(store, ref), ["one", "two", "three"]);
    },
  },
  {
    id: "maintenance/while-writing",
    demand: "what is written while a store is checked is not taken for damage, and is not kept from being written",
    requires: isMaintained,
    async run({ store }) {
      const refs: SessionRef[] = [];
      for (const name of ["a", "b", "c"]) refs.push(await createSession(store, name));
      const said = numbersTo(12).map((number) => `n${number}`);
      const write = async (): Promise<void> => {
        for (const text of said) for (const ref of refs) await store.append(ref, [userDraft(text)]);
      };
      const looking = async (): Promise<void> => {
        for (const full of [false, true, true]) await assertNoErrors(facetOf(store).verify({ full }), `full: ${full}`);
      };
      const [wrote, looked] = await Promise.allSettled([write(), looking()]);
      for (const each of [looked, wrote]) if (each.status === "rejected") throw each.reason;
      for (const ref of refs) assert.deepEqual(await readTexts(store, ref), said);
      await assertNoErrors(facetOf(store).verify({ full: true }), "afterwards");
    },
  },
  {
    id: "maintenance/aborted",
    demand: "a check and a repair whose signal was aborted end in ABORTED",
    requires: isMaintained,
    async run({ store }) {
      await store.append(await createSession(store, "a"), [userDraft("one")]);
      const signal = AbortSignal.abort();
      await assertFails(allOf(facetOf(store).verify({ full: true, signal })), "ABORTED");
      await assertFails(allOf(facetOf(store).repair({ signal })), "ABORTED");
    },
  },
  {
    id: "maintenance/closed",
    demand: "a check and a repair of a closed handle end in STORE_CLOSED",
    requires: isMaintained,
    async run({ store }) {
      await createSession(store, "a");
      const facet = facetOf(store);
      await store.close();
      const ask = async (findings: () => AsyncIterable<Finding>): Promise<Finding[]> => allOf(findings());
      await assertFails(
        ask(() => facet.verify()),
        "STORE_CLOSED",
      );
      await assertFails(
        ask(() => facet.repair()),
        "STORE_CLOSED",
      );
    },
  },
];
