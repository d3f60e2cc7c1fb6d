import { afterEach, describe, expect, it } from "vitest";
import { loadExisting, systemRecordIds } from "@throughline/core/internal";
import type { SessionStore } from "@throughline/core";
import { createCompactor } from "@throughline/compaction";
import { createSummaryRetry } from "../src/retry-summaries.ts";
import { readRetries } from "../src/retry-entry.ts";
import { tokenMeasure } from "../src/compactor.ts";
import { endEverywhere } from "@throughline/test-kit";
import { emptyCalibration } from "@throughline/tokens";
import { StoppedClock } from "./stopped-clock.ts";
import {
  allRecords,
  begin,
  contextOf,
  counter,
  failing,
  places,
  ports,
  ref,
  request,
  summarizer,
  turns,
  type Place,
} from "./compaction-fixture.ts";

const good = "They read the files one by one and found nothing wrong so far.";

describe.each(places)("a process that ends, over store-$name", ({ create }) => {
  let place: Place;
  afterEach(() => place.remove());

  /** Runs work over a store that ends at every call in turn, and checks what another process finds. */
  function tryEveryEnd(
    prepare: (store: SessionStore) => Promise<void>,
    work: (store: SessionStore) => Promise<unknown>,
    check: (store: SessionStore) => Promise<void>,
  ): Promise<number> {
    return endEverywhere(async (end) => {
      place = create();
      const store = place.open();
      await prepare(store);
      await work(end(store)).catch((error: unknown) => expect(error).toMatchObject({ code: "STORE_CLOSED" }));
      await store.close();
      const again = place.open();
      await check(again);
      await again.close();
      place.remove();
    });
  }

  it(
    "at any call of a compaction leaves the old state or the new, and the next compaction works",
    { tags: ["slow"] },
    async () => {
      const compact = (store: SessionStore): Promise<unknown> =>
        createCompactor({ store, ...ports, summarizers: [summarizer(good)] }).compact(ref, request(8000));
      const seen = new Set<string>();
      const calls = await tryEveryEnd(
        (store) => begin(store, turns(16)),
        compact,
        async (store) => {
          const { entry, head } = await loadExisting(store, ref);
          const compactions = (await allRecords(store)).filter(({ type }) => type === "compaction").length;
          const { messages, summaryId } = await contextOf(store);
          expect(compactions).toBeLessThanOrEqual(1);
          seen.add(compactions === 0 ? "old" : "new");
          expect([entry.compactionCount ?? 0, summaryId !== null, head.windowSeq !== null]).toEqual(
            compactions === 0 ? [0, false, false] : [1, true, true],
          );
          expect([messages.length === 64, messages.length < 64]).toEqual([compactions === 0, compactions === 1]);
          await store.append(ref, turns(16, 16));
          expect(await compact(store)).toMatchObject({ kind: "compacted" });
        },
      );
      expect(calls).toBeGreaterThan(4);
      expect([...seen].toSorted()).toEqual(["new", "old"]);
    },
  );

  it(
    "at any call of a retry leaves the poorer summary or the better, and the next retry settles it",
    { tags: ["slow"] },
    async () => {
      const clock = new StoppedClock();
      const measure = tokenMeasure(counter, emptyCalibration);
      const retry = (store: SessionStore): Promise<unknown> =>
        createSummaryRetry({ store, clock, ids: systemRecordIds, measure, summarizers: [summarizer(good)] }).run(ref);
      const seen = new Set<string>();
      const calls = await tryEveryEnd(
        async (store) => {
          await begin(store, turns(16));
          await createCompactor({ store, ...ports, summarizers: [failing] }).compact(ref, request(8000));
        },
        retry,
        async (store) => {
          const summary = JSON.stringify((await contextOf(store)).messages[0]?.content);
          const isBetter = summary.includes("found nothing wrong");
          seen.add(isBetter ? "new" : "old");
          expect(Object.keys(readRetries((await loadExisting(store, ref)).entry))).toHaveLength(isBetter ? 0 : 1);
          await retry(store);
          expect(JSON.stringify((await contextOf(store)).messages[0]?.content)).toContain("found nothing wrong");
          expect(readRetries((await loadExisting(store, ref)).entry)).toEqual({});
          expect((await allRecords(store)).filter(({ type }) => type === "compaction")).toHaveLength(2);
        },
      );
      expect(calls).toBeGreaterThan(4);
      expect([...seen].toSorted()).toEqual(["new", "old"]);
    },
  );
});
