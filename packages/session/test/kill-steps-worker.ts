// Does one piece of work on a session and ends itself with SIGKILL at its n-th call of the store. Run by kill-steps.slow.test.ts.
import { flushCompileCache } from "node:module";
import process from "node:process";
import { createCheckpointer } from "@throughline/checkpoint";
import { createCompactor } from "@throughline/compaction";
import { createSummaryRetry, tokenMeasure } from "@throughline/compaction/internal";
import { systemClock, systemRecordIds } from "@throughline/core/internal";
import { createTokenEstimator, emptyCalibration } from "@throughline/tokens";
import { aroundCalls } from "@throughline/test-kit";
import { openStore } from "./process-store.ts";
import { killedRef, summaryOf, type KilledWork } from "./kill-steps-fixture.ts";

const [scheme, folder, work, calls, done] = process.argv.slice(2) as [
  "sqlite" | "jsonl",
  string,
  KilledWork,
  string,
  string,
];

// A process that is killed does not keep what it compiled by itself.
flushCompileCache();

function die(): never {
  process.kill(process.pid, "SIGKILL");
  throw new Error("it is not dead");
}

let made = 0;
const real = openStore(scheme, folder);
const store = aroundCalls(real, ({ name, run }) => {
  if (name === "close") return run();
  made += 1;
  if (made < Number(calls)) return run();
  if (done === "false" || name === "read") die();
  return Promise.resolve(run()).then(die);
});

const ports = { store, clock: systemClock, ids: systemRecordIds };
const summarizers = [{ summarize: () => Promise.resolve({ summary: summaryOf(work), source: "works", usage: null }) }];
const model = { provider: "anthropic", modelId: "claude-sonnet-4-5" };
const counter = await createTokenEstimator().counterFor(model, { method: "heuristic" });
if (work === "checkpoint") {
  const writer = { name: "works", write: () => Promise.resolve(`{"summary": ${JSON.stringify(summaryOf(work))}}`) };
  await createCheckpointer({ ...ports, owner: `process ${process.pid}`, writers: [writer] }).make(killedRef, 6000);
} else if (work === "compaction") {
  const request = { counter, calibration: emptyCalibration, windowTokens: 8000 };
  await createCompactor({ ...ports, summarizers }).compact(killedRef, request);
} else {
  await createSummaryRetry({ ...ports, summarizers, measure: tokenMeasure(counter, emptyCalibration) }).run(killedRef);
}
process.stdout.write(`${made}\n`);
await real.close();
