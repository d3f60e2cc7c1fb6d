import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Counts of one test run, as the reporter leaves them for the step that prints the last line. */
export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** How many of the skipped tests were skipped for which reason. */
  readonly skippedBecause: Readonly<Record<string, number>>;
  /** What the fault suites went through; null when none of them ran. */
  readonly faults: FaultCounts | null;
  /** Slow tests that were left to the whole tier. @default 0 */
  readonly left?: number;
  /** The slowest tests, the slowest first. @default [] */
  readonly slowest?: readonly TimedTest[];
  /** What failed in a file. @default [] */
  readonly failures?: readonly FailedTest[];
  /** What passed, in a run of few files. @default [] */
  readonly passes?: readonly PassedTest[];
  /** Errors outside of every file; `failed` counts them too. @default 0 */
  readonly unhandled?: number;
  /** What failed first and passed when its file ran once more, alone. @default [] */
  readonly unstable?: readonly FailedTest[];
}

/** A test that failed, or a file whose loading or preparation did. */
export interface FailedTest {
  readonly file: string;
  /** The vitest project, since some files run in several; empty for the one without a name. */
  readonly project: string;
  /** Empty for a file. */
  readonly name: string;
  readonly error: string;
}

/** A test that passed, and the faults that it went through. */
export interface PassedTest extends Omit<FailedTest, "error"> {
  readonly faults?: FaultCounts;
}

/** How long one test took, and whether it has the tag `slow` or lies in a file of slow tests. */
export interface TimedTest {
  readonly name: string;
  readonly file: string;
  readonly ms: number;
  readonly isSlow: boolean;
}

/** The counts of a run that never began or did not reach its end. */
export const noCounts: TestCounts = { passed: 0, failed: 1, skipped: 0, skippedBecause: {}, faults: null };

/** States of a simulated disk that a store was opened in, and processes that were killed. */
export interface FaultCounts {
  readonly states: number;
  readonly kills: number;
}

/** Where the counts lie between two steps of `npm test`. */
export const countsFile: string = join(import.meta.dirname, "../node_modules/.cache/throughline/tests.json");

/** Where the times of all tests of the last run lie, for `npm run check:slow`. */
export const timesFile: string = join(import.meta.dirname, "../node_modules/.cache/throughline/times.json");

/** The last line of every test run, in the one form that other tools look for. */
export function closingLine(counts: TestCounts): string {
  return `tests: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
}

/** The faults of some tests together, or null when there was none. */
export function sumOfFaults(all: Iterable<FaultCounts | undefined | null>): FaultCounts | null {
  let [states, kills] = [0, 0];
  for (const faults of all) {
    states += faults?.states ?? 0;
    kills += faults?.kills ?? 0;
  }
  return states + kills > 0 ? { states, kills } : null;
}

/** The line that says why tests were skipped, or null when none was. */
export function skippedLine(counts: TestCounts): string | null {
  const reasons = Object.entries(counts.skippedBecause).toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (reasons.length === 0) return null;
  return `skipped: ${reasons.map(([reason, count]) => `${count} ${reason}`).join(", ")}`;
}

/** The line that says what the fault suites went through, or null when none ran. */
export function faultsLine({ faults }: TestCounts): string | null {
  return faults === null ? null : `faults: ${faults.states} states, ${faults.kills} kills`;
}

/** The lines that name the slowest tests with their seconds, or null when none is known. */
export function slowestLines({ slowest = [] }: TestCounts): string | null {
  if (slowest.length === 0) return null;
  return [
    "slowest:",
    ...slowest.map(({ file, name, ms }) => `${(ms / 1000).toFixed(1).padStart(6)} s  ${file} ${name}`),
  ].join("\n");
}

/** The line that says how many tests only the whole tier runs, or null when there is none. */
export function leftLine({ left = 0 }: TestCounts): string | null {
  return left === 0 ? null : `left: ${left} slow tests and the files of slow tests, which npm test -- --all runs`;
}

/** The lines that name each unstable test with its first error, or null when there is none. */
export function unstableLines({ unstable = [] }: TestCounts): string | null {
  if (unstable.length === 0) return null;
  return unstable
    .map(({ file, name, error }) => {
      const lines = error.split("\n").map((line) => `  ${line}`);
      return [`unstable: ${name === "" ? file : `${file} > ${name}`}`, ...lines].join("\n");
    })
    .join("\n");
}

/** Everything that is printed at the end of a run. */
export function closingText(counts: TestCounts): string {
  const lines = [slowestLines, skippedLine, faultsLine, leftLine, unstableLines, closingLine].map((line) =>
    line(counts),
  );
  return lines.filter((line) => line !== null).join("\n");
}

/** Writes the counts, making the folder when needed. */
export function writeCounts(counts: TestCounts, path: string = countsFile): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(counts)}\n`);
}

/** Reads the counts of the run that has just ended; null when it did not get as far as writing them. */
export function readCounts(path: string = countsFile): TestCounts | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as TestCounts;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Forgets the counts of an earlier run, so that they can never stand in for a run that died. */
export function clearCounts(path: string = countsFile): void {
  rmSync(path, { force: true });
}
