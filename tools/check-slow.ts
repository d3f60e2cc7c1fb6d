import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { timesFile, type TimedTest } from "./closing-line.ts";
import { repositoryRoot } from "./find-files.ts";

/** How long a test of the default tier may take, and how often one that took longer runs in all. */
const bounds = { ms: 2000, runs: 3 } as const;

/** What `tools/test-budgets.json` holds: seconds of test time in the whole tier, by folder, on a machine with this control. */
export interface TestBudgets {
  /** How long the control took on the machine that the budgets were measured on. */
  readonly controlMs: number;
  readonly seconds: Readonly<Record<string, number>>;
}

/** What takes too long: tests of the default tier, and folders over their budget. */
export interface SlowReport {
  readonly tests: readonly TimedTest[];
  readonly folders: readonly { readonly folder: string; readonly seconds: number; readonly budget: number }[];
}

/** Finds the tests of the default tier over 2 s, and the folders over their budget on a machine `speed` times as slow. */
export function findSlow(times: readonly TimedTest[], budgets: TestBudgets, speed: number): SlowReport {
  const sums = new Map<string, number>();
  for (const { file, ms } of times) sums.set(folderOf(file), (sums.get(folderOf(file)) ?? 0) + ms / 1000);
  return {
    tests: times.filter(({ isSlow, ms }) => !isSlow && ms > bounds.ms),
    folders: [...sums]
      .map(([folder, seconds]) => ({ folder, seconds, budget: (budgets.seconds[folder] ?? 0) * speed }))
      .filter(({ seconds, budget }) => seconds > budget),
  };
}

/** `packages/core` of `packages/core/test/a.test.ts`; `tools` of its tests. */
function folderOf(file: string): string {
  return /^(?:(?:packages|apps|examples)\/[^/]+|lab)/.exec(file)?.[0] ?? "tools";
}

/** The middle one of some times. */
function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** What most of the slow tests do: starts a process. The same on each machine, so it tells how fast this one is now. */
function controlMs(): number {
  const times = Array.from({ length: 15 }, () => {
    const start = performance.now();
    spawnSync(process.execPath, ["-e", "for (let i = 0, x = 0; i < 2e7; i++) x += i % 7"]);
    return performance.now() - start;
  });
  return median(times);
}

function runTests(args: readonly string[]): readonly TimedTest[] {
  const { error, status } = spawnSync("vitest", ["run", ...args], { cwd: repositoryRoot, stdio: "inherit" });
  if (error !== undefined) throw error;
  if (status === 0) return JSON.parse(readFileSync(timesFile, "utf8")) as readonly TimedTest[];
  throw new Error(`vitest run ${args.join(" ")} ended with ${status}: times of failed tests say nothing.`);
}

/** A test by its full name, for `vitest -t`, which takes an expression. */
function exactly({ name }: TimedTest): string {
  return `^${name.replaceAll(" > ", " ").replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;
}

if (import.meta.main) {
  const budgetsPath = join(repositoryRoot, "tools/test-budgets.json");
  if (!existsSync(budgetsPath)) throw new Error(`${budgetsPath} is missing.`);
  const budgets = JSON.parse(readFileSync(budgetsPath, "utf8")) as TestBudgets;
  const before = controlMs();
  const times = runTests([]);
  const speed = Math.max(before, controlMs()) / budgets.controlMs;
  const { tests, folders } = findSlow(times, budgets, speed);
  const problems = folders.map(
    ({ folder, seconds, budget }) =>
      `${folder}: ${seconds.toFixed(1)} s of tests; its budget is ${budget.toFixed(1)} s`,
  );
  for (const test of tests) {
    const repeats = Array.from({ length: bounds.runs - 1 }, () => runTests([test.file, "-t", exactly(test)]));
    const runs = repeats.map((repeat) => repeat.find(({ name }) => name === test.name)?.ms ?? test.ms);
    const ms = median([test.ms, ...runs]);
    if (ms <= bounds.ms * speed) continue;
    problems.push(`${test.file}: "${test.name}" takes ${(ms / 1000).toFixed(1)} s; give it the tag slow`);
  }
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  process.stdout.write(`slow: speed ${speed.toFixed(2)} of the measured machine, ${problems.length} problems\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
