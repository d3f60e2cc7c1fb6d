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
}

/** States of a simulated disk that a store was opened in, and processes that were killed. */
export interface FaultCounts {
  readonly states: number;
  readonly kills: number;
}

/** Where the counts lie between two steps of `npm test`. */
export const countsFile: string = join(import.meta.dirname, "../node_modules/.cache/throughline/tests.json");

/** The last line of every test run, in the one form that other tools look for. */
export function closingLine(counts: TestCounts): string {
  return `tests: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
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

/** Everything that is printed at the end of a run. */
export function closingText(counts: TestCounts): string {
  return [skippedLine(counts), faultsLine(counts), closingLine(counts)].filter((line) => line !== null).join("\n");
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
