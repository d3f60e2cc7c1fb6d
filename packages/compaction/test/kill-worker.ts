// Compacts and makes summaries again without a pause, until it is killed. Run by kill.slow.test.ts.
import { join } from "node:path";
import process from "node:process";
import { type SessionStore, type Summarizer, ThroughlineError } from "@throughline/core";
import { systemClock, systemRecordIds } from "@throughline/core/internal";
import { createCompactor } from "@throughline/compaction";
import { createSummaryRetry } from "../src/retry-summaries.ts";
import { tokenMeasure } from "../src/compactor.ts";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createSqliteStore } from "@throughline/store-sqlite";
import { emptyCalibration } from "@throughline/tokens";
import { begin, counter, ref, request, turns } from "./compaction-fixture.ts";

const [scheme, directory] = process.argv.slice(2) as [string, string];
const store: SessionStore =
  scheme === "sqlite" ? createSqliteStore({ path: join(directory, "s.db") }) : createJsonlStore({ root: directory });
let calls = 0;
/** Every third call fails, so that there is something to make again. */
const model: Summarizer = {
  async summarize() {
    calls++;
    if (calls % 3 === 0) throw new ThroughlineError("STORE_IO", "the provider is down");
    return { summary: `They went on for the ${calls}th time.`, source: "worker", usage: null };
  },
};
const compactor = createCompactor({ store, clock: systemClock, ids: systemRecordIds, summarizers: [model] });
const measure = tokenMeasure(counter, emptyCalibration);
const retry = createSummaryRetry({
  store,
  clock: systemClock,
  ids: systemRecordIds,
  summarizers: [model],
  measure,
  firstDelayMs: 0,
});
await begin(store, []);
for (let round = 0; ; round++) {
  await store.append(ref, turns(12, round * 12));
  process.stdout.write("appended\n");
  await compactor.compact(ref, request(8000));
  await retry.run(ref);
}
