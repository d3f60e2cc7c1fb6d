import { writeFileSync } from "node:fs";
import { relative, sep } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { closingText, countsFile, sumOfFaults, timesFile, writeCounts } from "./closing-line.ts";
import type { FailedTest, FaultCounts, PassedTest, TestCounts, TimedTest } from "./closing-line.ts";
import { repositoryRoot } from "./find-files.ts";

/** The part of a vitest test case that is counted. */
export interface CountedTest {
  readonly fullName: string;
  result(): {
    readonly state: string;
    readonly note?: string | undefined;
    readonly errors?: readonly { readonly message: string }[] | undefined;
  };
  /** What the test says of itself; `faults` is counted when it passed. */
  meta(): { readonly faults?: FaultCounts };
  readonly tags?: readonly string[];
  /** Undefined for a test that did not run. */
  diagnostic?(): { readonly duration: number } | undefined;
}

/** The part of a vitest module that is counted. */
export interface CountedModule {
  readonly moduleId: string;
  errors(): readonly unknown[];
  readonly children: { allTests(): Iterable<CountedTest>; allSuites?(): Iterable<{ errors(): readonly unknown[] }> };
  readonly project?: { readonly name: string };
}

function skipReason(test: CountedTest, moduleId: string): string {
  const note = test.result().note;
  if (note) return note;
  // The real inputs lie outside the repository; without the variable their tests skip, and say so here.
  return /corpus/i.test(test.fullName) || /corpus/i.test(moduleId) ? "need THROUGHLINE_CORPUS" : "other";
}

/**
 * Counts a finished run. A module that failed to load and an error outside every test count as one failure each:
 * otherwise a broken import would read as "0 failed".
 */
export function countTests(
  modules: Iterable<CountedModule>,
  unhandled: number,
  leavesSlowTests: boolean = false,
): TestCounts {
  let left = 0;
  let passed = 0;
  let failed = unhandled;
  let skipped = 0;
  const skippedBecause: Record<string, number> = {};
  let faults: FaultCounts | null = null;
  for (const module of modules) {
    failed += module.errors().length;
    for (const test of module.children.allTests()) {
      const state = test.result().state;
      if (state === "passed") {
        passed += 1;
        faults = sumOfFaults([faults, test.meta().faults]);
      } else if (state === "failed") failed += 1;
      else if (leavesSlowTests && isSlow(test)) left += 1;
      else {
        skipped += 1;
        const reason = skipReason(test, module.moduleId);
        skippedBecause[reason] = (skippedBecause[reason] ?? 0) + 1;
      }
    }
  }
  return { passed, failed, skipped, skippedBecause, faults, left };
}

function isSlow(test: CountedTest): boolean {
  return test.tags?.includes("slow") === true;
}

/** What failed in each file: its tests, its loading, and what prepares a suite. */
export function failuresOf(modules: Iterable<CountedModule>): readonly FailedTest[] {
  return [...modules].flatMap((module) => {
    const place = { file: fileOf(module), project: module.project?.name ?? "" };
    const suites = [...(module.children.allSuites?.() ?? [])];
    const whole = [module, ...suites].flatMap((part) => [...part.errors()]).map(messageOf);
    const tests = [...module.children.allTests()].filter((test) => test.result().state === "failed");
    return [
      ...(whole[0] === undefined ? [] : [{ ...place, name: "", error: whole[0] }]),
      ...tests.map((test) => ({ ...place, name: test.fullName, error: messageOf(test.result().errors?.[0]) })),
    ];
  });
}

/** A run of more files names no passed tests, since thousands of names would be of no use. */
const mostNamedModules = 20;

/** The tests that passed, in a run of few files. */
export function passesOf(modules: readonly CountedModule[]): readonly PassedTest[] {
  if (modules.length > mostNamedModules) return [];
  return modules.flatMap((module) => {
    const place = { file: fileOf(module), project: module.project?.name ?? "" };
    const tests = [...module.children.allTests()].filter((test) => test.result().state === "passed");
    return tests.map((test) => {
      const { faults } = test.meta();
      return { ...place, name: test.fullName, ...(faults === undefined ? {} : { faults }) };
    });
  });
}

function fileOf({ moduleId }: CountedModule): string {
  return relative(repositoryRoot, moduleId).split(sep).join("/");
}

function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return stripVTControlCharacters(typeof message === "string" ? message : "no message");
}

/** How long each test that ran took. */
export function timeTests(modules: Iterable<CountedModule>): readonly TimedTest[] {
  return [...modules].flatMap((module) => {
    const file = fileOf(module);
    return [...module.children.allTests()].flatMap((test) => {
      const ms = test.diagnostic?.()?.duration;
      if (ms === undefined) return [];
      return [{ name: test.fullName, file, ms, isSlow: isSlow(test) || file.endsWith(".slow.test.ts") }];
    });
  });
}

/** How many of the slowest tests the end of a run names, and how long each takes at least. */
const shownTests = 10;
const shownMs = 500;

function slowestOf(times: readonly TimedTest[]): readonly TimedTest[] {
  const slow = times.filter(({ ms }) => ms >= shownMs);
  return slow.toSorted((a, b) => b.ms - a.ms).slice(0, shownTests);
}

/** The vitest reporter: leaves the counts in a file and, when vitest runs by itself, prints the closing line. */
export default class ClosingLineReporter {
  #leavesSlowTests = false;

  onInit(vitest: { readonly config: { readonly tagsFilter?: readonly string[] | undefined } }): void {
    this.#leavesSlowTests = vitest.config.tagsFilter?.includes("!slow") === true;
  }

  onTestRunEnd(modules: readonly CountedModule[], unhandledErrors: readonly unknown[]): void {
    const times = timeTests(modules);
    const counted = countTests(modules, unhandledErrors.length, this.#leavesSlowTests);
    const counts: TestCounts = {
      ...counted,
      slowest: slowestOf(times),
      failures: failuresOf(modules),
      passes: passesOf(modules),
      unhandled: unhandledErrors.length,
    };
    const path = process.env["THROUGHLINE_COUNTS_FILE"];
    writeCounts(counts, path ?? countsFile);
    // The times of a run of other files, such as the tests of this reporter, are of no use to `npm run check:slow`.
    if (path === undefined) writeFileSync(timesFile, JSON.stringify(times));
    // Under `npm test` later steps still follow, so the line is theirs to print.
    if (process.env["THROUGHLINE_CLOSING_LINE"] === "deferred") return;
    process.on("exit", () => void process.stdout.write(`${closingText(counts)}\n`));
  }
}
