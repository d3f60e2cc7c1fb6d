import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { loadExisting, systemRecordIds } from "@throughline/core/internal";
import type { SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import { createCompactor } from "@throughline/compaction";
import { createSummaryRetry } from "../src/retry-summaries.ts";
import { readCompactionDetails } from "../src/compaction-details.ts";
import { tokenMeasure } from "../src/compactor.ts";
import type { BackgroundCompaction } from "../src/background-compaction.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { emptyCalibration } from "@throughline/tokens";
import { StoppedClock } from "./stopped-clock.ts";
import {
  allRecords,
  begin,
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

describe.each(places.filter(({ name }) => name !== "memory"))(
  "two processes at one session over store-$name",
  ({ create }) => {
    let place: Place;
    afterEach(() => place.remove());

    it("compact it once: the one that comes second gives way", async () => {
      place = create();
      const stores = [place.open(), place.open()];
      await begin(stores[0] as SessionStore, turns(40));
      const runs = stores.map((store) =>
        createCompactor({ store, ...ports, summarizers: [summarizer(good)] }).begin(ref, request(16_000)),
      );
      await Promise.all(runs.map(({ ready }) => ready));
      const results = await Promise.all(runs.map((run) => run.apply()));
      expect(results.map(({ kind }) => kind).toSorted()).toEqual(["compacted", "superseded"]);
      const records = await allRecords(stores[0] as SessionStore);
      expect(records.filter(({ type }) => type === "compaction")).toHaveLength(1);
      expect((await loadExisting(stores[1] as SessionStore, ref)).entry.compactionCount).toBe(1);
      for (const store of stores) await store.close();
    });
  },
);

/** What may happen to a session, in any order. */
const action = fc.constantFrom("turns", "turns", "begin", "apply", "compact", "compact badly", "retry", "stop");

describe("any order of turns, compactions in the background and at once, failures and retries", () => {
  it(
    "loses no message, keeps every request valid, and counts every compaction",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 24 }), async (actions) => {
          const store = createMemoryStore();
          await begin(store, turns(10));
          const clock = new StoppedClock();
          const compactor = createCompactor({ store, ...ports, summarizers: [summarizer(good)] });
          const bad = createCompactor({ store, ...ports, summarizers: [failing] });
          const measure = tokenMeasure(counter, emptyCalibration);
          const summarizers = [summarizer(good)];
          const retry = createSummaryRetry({ store, clock, ids: systemRecordIds, summarizers, measure });
          let run: BackgroundCompaction | null = null;
          // Whoever puts in place what is in place already is told of the same compaction again.
          const counted = new Set<string>();
          for (const [index, name] of actions.entries()) {
            if (name === "turns") await store.append(ref, turns(6, 100 * (index + 1)));
            if (name === "begin") run = compactor.begin(ref, request(4000));
            if (name === "stop") run?.stop();
            if (name === "apply" && run !== null) {
              const outcome = await run.apply().catch(() => ({ kind: "stopped" }) as const);
              if (outcome.kind === "compacted") counted.add(outcome.recordId);
              run = null;
            }
            if (name === "retry") await retry.run(ref);
            if (name.startsWith("compact")) {
              const result = await (name === "compact" ? compactor : bad)
                .compact(ref, request(4000))
                .catch(() => ({ kind: "stopped" }) as const);
              if (result.kind === "compacted") counted.add(result.recordId);
            }
          }
          await run?.ready.catch(() => {});
          const records = await allRecords(store);
          const { entry, head } = await loadExisting(store, ref);
          expect(entry.compactionCount ?? 0).toBe(counted.size);
          const context = buildContext(records, { headId: head.headId });
          const fromWindow = buildContext(records.slice((head.windowSeq ?? 1) - 1), { headId: head.headId });
          expect(fromWindow.messages).toEqual(context.messages);
          expect(validateAnthropic(renderAnthropic(context).messages)).toEqual([]);
          const shown = new Set(context.messages.map(({ recordId }) => recordId));
          const ranges = records.flatMap(({ record }) => readCompactionDetails(record["details"]) ?? []);
          for (const { type, id, seq } of records) {
            if (type !== "message" || shown.has(id)) continue;
            const isSummarized = ranges.some((range) => seq >= range.summarizedFromSeq && seq <= range.summarizedToSeq);
            expect(isSummarized).toBe(true);
          }
        }),
        { numRuns: 25 },
      );
    },
  );
});
