// Does the work beside a turn, one piece after the other, and says on stdout what came of each, a line of JSON each.
// node test/flush-work-worker.ts <store> <path>, with the environment of the flush shim.
import process from "node:process";
import { createCheckpointer } from "@throughline/checkpoint";
import { createCompactor } from "@throughline/compaction";
import { createSummaryRetry, tokenMeasure } from "@throughline/compaction/internal";
import { loadExisting, resetSession, systemClock, systemRandom, systemRecordIds } from "@throughline/core/internal";
import { redactRecords } from "@throughline/core";
import { createTokenEstimator, emptyCalibration } from "@throughline/tokens";
import { isOnDisk } from "../../../tools/flush-shim.ts";
import { openStore } from "./process-store.ts";
import { killedRef as ref, summaryOf } from "./kill-steps-fixture.ts";

const [kind = "", path = ""] = process.argv.slice(2);
const say = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);
const model = { provider: "anthropic", modelId: "claude-sonnet-4-5" };
const counter = await createTokenEstimator().counterFor(model, { method: "heuristic" });
const measure = tokenMeasure(counter, emptyCalibration);
const request = { counter, calibration: emptyCalibration, windowTokens: 8000 };
const summarizer = (work: Parameters<typeof summaryOf>[0]) => ({
  summarize: () => Promise.resolve({ summary: summaryOf(work), source: "works", usage: null }),
});
const poor = {
  summarize: () => Promise.resolve({ summary: "A poor summary of it.", source: "extractive", usage: null }),
};

/** What the disk has when a piece of work is done. */
const evidence: Readonly<Record<string, string>> = {
  checkpoint: summaryOf("checkpoint"),
  compaction: "A poor summary of it.",
  retry: summaryOf("retry"),
  redaction: "redactedSeqs",
};

try {
  await using store = openStore(kind, path);
  const ports = { store, clock: systemClock, ids: systemRecordIds };
  const writer = {
    name: "works",
    write: () => Promise.resolve(`{"summary": ${JSON.stringify(summaryOf("checkpoint"))}}`),
  };
  const steps: readonly (readonly [string, () => Promise<unknown>])[] = [
    // Before the checkpoint, whose words it would take where no model gives any.
    [
      "compaction",
      async () => {
        const options = { ...ports, summarizers: [], extractive: poor, preferCheckpoint: false };
        return (await createCompactor(options).compact(ref, request)).kind;
      },
    ],
    [
      "checkpoint",
      async () => (await createCheckpointer({ ...ports, owner: "p", writers: [writer] }).make(ref, 6000)).kind,
    ],
    [
      "retry",
      async () => {
        const retry = createSummaryRetry({ ...ports, summarizers: [summarizer("retry")], measure });
        return (await retry.run(ref, { scan: true })).map((outcome) => outcome.kind).join();
      },
    ],
    [
      "redaction",
      async () => {
        const [first] = await firstIds();
        return (await redactRecords(store, ref, [first ?? ""], { reason: "asked" })).seqs.length > 0;
      },
    ],
    ["reset", async () => (await resetSession(store, ref, { random: systemRandom })).sessionId],
  ];
  const firstIds = async (): Promise<string[]> => {
    for await (const { records } of store.read(ref)) return records.map(({ id }) => id);
    return [];
  };
  for (const [name, work] of steps) {
    try {
      const result = await work();
      const words = { ...evidence, reset: String(result) }[name] ?? "";
      const isDone = ["written", "compacted", "improved", true].includes(result as string) || name === "reset";
      say({ is: isDone ? "done" : "left", name, result, isOnDisk: isOnDisk(process.env["FLUSH_DISK"] ?? "", words) });
    } catch (error) {
      const { code = String(error), outcome = null } = error as { readonly code?: string; readonly outcome?: string };
      say({ is: "thrown", name, code, outcome });
    }
  }
  await loadExisting(store, ref);
  say({ is: "end" });
} catch (error) {
  say({ is: "stopped", code: (error as { readonly code?: string }).code ?? String(error) });
}
