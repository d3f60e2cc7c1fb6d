import assert from "node:assert/strict";
import type { SessionRef, SessionStore, StoreCapabilities, WatchFacet } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { abilityOf, assertFails, createSession, numbersTo, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";

const requires = ({ watch }: StoreCapabilities): boolean => watch;

function facetOf({ watch }: SessionStore): WatchFacet {
  assert.ok(watch !== undefined, "a store that declares watch has the facet");
  return watch;
}

/** Describes a running watch; `seqs` holds the delivered numbers. */
interface Watching {
  readonly seqs: number[];
  /** Resolves when this many records were delivered; fails after ten seconds. */
  until(count: number): Promise<void>;
  stop(): Promise<void>;
}

function watching(store: SessionStore, ref: SessionRef, afterSeq = 0): Watching {
  const controller = new AbortController();
  const seqs: number[] = [];
  const done = (async (): Promise<void> => {
    for await (const { records } of facetOf(store).watch(ref, { afterSeq, signal: controller.signal }))
      seqs.push(...records.map(({ seq }) => seq));
  })();
  done.catch(() => undefined);
  return {
    seqs,
    until: async (count) => {
      for (let waited = 0; seqs.length < count && waited < 1000; waited++) await systemClock.sleep(10);
      assert.ok(seqs.length >= count, `the watch saw ${seqs.length} of ${count} records`);
    },
    stop: async () => {
      controller.abort();
      await done;
    },
  };
}

export const watchCases: readonly ConformanceCase[] = [
  {
    id: "watch/follows",
    demand: "a watch gives every record once and in order: those that are there, then those that come",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("two")]);
      const watch = watching(store, ref);
      await watch.until(2);
      for (const each of numbersTo(5)) await store.append(ref, [userDraft(`n${each}`), userDraft(`m${each}`)]);
      await watch.until(12);
      await watch.stop();
      assert.deepEqual(watch.seqs, numbersTo(12));
    },
  },
  {
    id: "watch/after-seq",
    demand: "a watch begins after the seq it is given",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one"), userDraft("two")]);
      const watch = watching(store, ref, 2);
      await systemClock.sleep(30);
      await store.append(ref, [userDraft("three")]);
      await watch.until(1);
      await watch.stop();
      assert.deepEqual(watch.seqs, [3]);
    },
  },
  {
    id: "watch/other-handle",
    demand: "a watch sees what another handle appends",
    requires,
    needs: ["another"],
    async run({ under, store }) {
      const ref = await createSession(store, "a");
      const other = await abilityOf(under, "another")();
      const watch = watching(store, ref);
      await systemClock.sleep(30);
      await other.append(ref, [userDraft("one")]);
      await watch.until(1);
      await other.append(ref, [userDraft("two")]);
      await watch.until(2);
      await watch.stop();
      assert.deepEqual(watch.seqs, [1, 2]);
    },
  },
  {
    id: "watch/one-session",
    demand: "a watch stays with the session it began with, when the key gets another",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      await store.append(ref, [userDraft("one")]);
      const watch = watching(store, ref);
      await watch.until(1);
      await store.save(ref, { sessionId: "session-next" }, { ifRevision: 1 });
      await store.append(ref, [userDraft("a"), userDraft("b")]);
      await systemClock.sleep(150);
      await watch.stop();
      assert.deepEqual(watch.seqs, [1]);
    },
  },
  {
    id: "watch/missing",
    demand: "watching a session that is not there fails",
    requires,
    async run({ store }) {
      const controller = new AbortController();
      const pages = facetOf(store).watch(refOf("none"), { afterSeq: 0, signal: controller.signal });
      await assertFails(pages[Symbol.asyncIterator]().next(), "SESSION_NOT_FOUND");
    },
  },
];
