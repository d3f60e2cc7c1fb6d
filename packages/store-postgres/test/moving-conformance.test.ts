import type { PayloadCodec, SessionStore } from "@throughline/core";
import { describeStoreConformance, type StoreUnderTest } from "@throughline/store-conformance";
import { createMovingStore, type PostgresStore } from "@throughline/store-postgres";
import { afterAll, describe, inject, it } from "vitest";
import { kitRunner } from "../../../tools/kit-runner.ts";
import { isLongRun } from "../../../tools/test-size.ts";
import { endPools, openUnderTest } from "./store-under-test.ts";

const place = inject("postgres");

afterAll(endPools);

/** Two schemas behind one store; its sessions begin at the target, or at the source as other programs begin them. */
async function openMoving(url: string, begin: "target" | "source", codec?: PayloadCodec): Promise<StoreUnderTest> {
  const to = await openUnderTest(url, codec, { layout: "tenant" });
  const from = await openUnderTest(url, codec, {});
  const join = (target: SessionStore, source: SessionStore): SessionStore => {
    const store = createMovingStore(target as PostgresStore, source as PostgresStore);
    if (begin === "target") return store;
    const { save } = store;
    return Object.assign(store, {
      save: (async (ref, entry, options) => {
        const isNew = options?.ifRevision === null && (await store.load(ref)) === null;
        return isNew ? source.save(ref, entry, options) : save(ref, entry, options);
      }) satisfies SessionStore["save"],
    });
  };
  const both = async <Result>(work: (each: StoreUnderTest) => Promise<Result>): Promise<[Result, Result]> => [
    await work(to),
    await work(from),
  ];
  const need = <Given>(given: Given | undefined): Given => given as Given;
  return {
    store: join(to.store, from.store),
    reopen: async () => join(...(await both((each) => need(each.reopen)()))),
    another: async () => join(...(await both((each) => need(each.another)()))),
    files: async () => (await both((each) => need(each.files)())).flat(),
    events: () => [to, from].flatMap((each) => [...need(each.events)()]),
    advanceClock: (deltaMs) => [to, from].forEach((each) => need(each.advanceClock)(deltaMs)),
    dispose: async () => void (await both((each) => each.dispose())),
  };
}

if ("unavailable" in place) {
  describe("a store over two schemas keeps the store contract", () => {
    it.skip(`needs PostgreSQL: ${place.unavailable}`, () => undefined);
  });
} else if (!isLongRun) {
  describe("a store over two schemas keeps the store contract", () => {
    it.skip("runs with THROUGHLINE_TEST_SIZE=long", () => undefined);
  });
} else {
  for (const begin of ["target", "source"] as const)
    describeStoreConformance({
      name: `a store over two schemas, sessions begin at the ${begin}`,
      runner: kitRunner,
      open: () => openMoving(place.url, begin),
      openWithCodec: (codec) => openMoving(place.url, begin, codec),
    });
}
