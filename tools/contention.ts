import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { bundledWorker } from "./bundle-worker.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import {
  findEntryProblems,
  findSessionProblems,
  findViewProblems,
} from "../packages/store-jsonl/test/contention-checks.ts";
import {
  contend,
  contentionChild,
  counterRef,
  seededNumbers,
  type ContentionOptions,
} from "../packages/store-jsonl/test/contention.ts";

/** What a round of processes that worked at once left behind. */
async function round(
  options: Omit<ContentionOptions, "root">,
): Promise<{ readonly told: number; readonly problems: readonly string[] }> {
  const root = mkdtempSync(join(tmpdir(), "throughline-contention-"));
  const { what, sessionsJson = true } = options;
  try {
    const store = createJsonlStore({ root, sessionsJson });
    await store.save(counterRef, { sessionId: "s1" }, { ifRevision: null });
    await store.close();
    const operations = await contend({ ...options, root });
    await using again = createJsonlStore({ root, sessionsJson });
    const find = what === "session" ? findSessionProblems : findEntryProblems;
    const problems = [...(await find(again, operations))];
    for await (const { code, message } of again.maintenance?.verify({ full: true }) ?? [])
      problems.push(`${code}: ${message}`);
    if (sessionsJson) problems.push(...(await findViewProblems(again, root)));
    return { told: operations.filter(({ got }) => got !== null).length, problems };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/**
 * The full size of what several processes at once leave of a JSONL store: on one session or on the entries, some of them
 * killed, the answers compared with those of a store that does a thing at a time.
 * node --conditions=@throughline/source tools/contention.ts [--what session|entries] [--view with|without] [--rounds 10]
 *   [--processes 8] [--kills 5] [--operations 300] [--seed 1]
 */
if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      what: { type: "string", default: "session" },
      view: { type: "string", default: "with" },
      rounds: { type: "string", default: "10" },
      processes: { type: "string", default: "8" },
      // Of each of the processes in a round.
      kills: { type: "string", default: "5" },
      operations: { type: "string", default: "300" },
      seed: { type: "string" },
    },
  });
  const what = values.what === "entries" ? "entries" : "session";
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  const startMs = performance.now();
  const child = bundledWorker(contentionChild);
  let told = 0;
  const problems: string[] = [];
  for (let each = 0; each < Number(values.rounds); each++) {
    const result = await round({
      what,
      sessionsJson: values.view !== "without",
      processes: Number(values.processes),
      killsEach: Number(values.kills),
      operationsEach: Number(values.operations),
      random: seededNumbers(seed + each),
      child,
    });
    told += result.told;
    problems.push(...result.problems.map((problem) => `round ${each}: ${problem}`));
  }
  for (const problem of problems.slice(0, 20)) process.stdout.write(`${problem}\n`);
  const kills = Number(values.rounds) * Number(values.processes) * Number(values.kills);
  process.stdout.write(
    `${values.processes} processes on ${what === "session" ? "one session" : "the entries"}, ${values.view} sessions.json, ${values.rounds} rounds, seed ${seed}: ` +
      `${told} operations, ${kills} kills, ${problems.length} problems, ${((performance.now() - startMs) / 1000).toFixed(1)} s\n`,
  );
  process.exitCode = problems.length === 0 && told > 0 ? 0 : 1;
}
