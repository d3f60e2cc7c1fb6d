import { join } from "node:path";
import process from "node:process";
import { createTokenEstimator } from "../packages/tokens/src/index.ts";
import type { CountMethod, TokenCounter } from "../packages/tokens/src/token-counter.ts";
import type { TokenEstimator } from "../packages/tokens/src/index.ts";
import {
  bandCoverage,
  bareCountWith,
  conversations,
  estimateWith,
  measureAccuracy,
  readSteps,
} from "../packages/tokens/test/accuracy.ts";
import type { Accuracy } from "../packages/tokens/test/accuracy.ts";
import { hostileTexts } from "../packages/tokens/test/hostile-texts.ts";

const methods: readonly CountMethod[] = ["claude", "o200k_base", "cl100k_base", "heuristic"];

function row(name: string, accuracies: readonly Accuracy[]): string {
  return `| ${name} | ${accuracies.map(({ comparable, all }) => `${comparable.toFixed(2)} | ${all.toFixed(2)}`).join(" | ")} |`;
}

function counterIn(counters: ReadonlyMap<CountMethod, TokenCounter>, method: CountMethod): TokenCounter {
  const counter = counters.get(method);
  if (counter === undefined) throw new Error(`no counter for ${method}`);
  return counter;
}

/** Errors of every estimator on the real conversations below `folder`, as a Markdown table. */
async function accuracyTable(folder: string, estimator: TokenEstimator): Promise<string> {
  const sets = conversations.map(({ name, file, model }) => ({
    name,
    model,
    steps: readSteps(join(folder, file), model),
  }));
  const counters = await Promise.all(
    sets.map(async ({ model, steps }) => ({
      steps,
      of: new Map(
        await Promise.all(
          [...methods, "chars4" as const].map(
            async (method) => [method, await estimator.counterFor(model, { method })] as const,
          ),
        ),
      ),
    })),
  );
  const measure = (method: CountMethod, kind: "bare" | "prior" | "calibrated"): Accuracy[] =>
    counters.map(({ steps, of }) => {
      const counter = counterIn(of, method);
      return measureAccuracy(
        steps,
        kind === "bare" ? bareCountWith(counter) : estimateWith(counter, kind === "calibrated"),
      );
    });
  const coverage = (method: CountMethod): string[] =>
    counters.map(({ steps, of }) => {
      const counter = counterIn(of, method);
      return `${bandCoverage(steps, counter).toFixed(1)} | ${bandCoverage(steps, counter, 1).toFixed(1)}`;
    });
  const sizes = measure("chars4", "bare").map(
    ({ comparableSteps, allSteps }) => `n=${comparableSteps} | n=${allSteps}`,
  );
  return [
    `| mean error in % | ${sets.map(({ name }) => `${name}, comparable | ${name}, all`).join(" | ")} |`,
    `| --- |${" --: |".repeat(sets.length * 2)}`,
    `| steps of 300 tokens and more | ${sizes.join(" | ")} |`,
    row("characters / 4", measure("chars4", "bare")),
    ...methods.map((method) => row(`${method}, bare`, measure(method, "bare"))),
    ...methods.map((method) => row(`${method}, factor and overhead`, measure(method, "prior"))),
    ...methods.map((method) => row(`${method}, calibrated`, measure(method, "calibrated"))),
    ...methods.map(
      (method) => `| ${method}, % within the band; of steps of any size | ${coverage(method).join(" | ")} |`,
    ),
  ].join("\n");
}

/** How long texts made to be slow take, as a Markdown table: the best of three, each with nothing merged before. */
async function hostileTable(): Promise<string> {
  const rows: string[] = [];
  for (const method of methods) {
    for (const [name, text] of hostileTexts) {
      const timesMs: number[] = [];
      let tokens = 0;
      for (let run = 0; run < 3; run++) {
        const counter = await createTokenEstimator().counterFor({ provider: null, modelId: "any" }, { method });
        const startMs = performance.now();
        tokens = counter.countText(text);
        timesMs.push(performance.now() - startMs);
      }
      rows.push(`| ${method} | ${name} | ${text.length} | ${tokens} | ${Math.min(...timesMs).toFixed(1)} |`);
    }
  }
  return ["| method | text | characters | tokens | ms |", "| --- | --- | --: | --: | --: |", ...rows].join("\n");
}

if (import.meta.main) {
  const estimator = createTokenEstimator();
  const folder = process.argv[2] ?? process.env["THROUGHLINE_CORPUS"];
  if (folder === undefined) console.log("No real conversations: name their folder, or set THROUGHLINE_CORPUS.\n");
  else console.log(`${await accuracyTable(folder, estimator)}\n`);
  console.log(await hostileTable());
}
