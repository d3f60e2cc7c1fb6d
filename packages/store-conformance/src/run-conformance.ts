import { assertKnownOptions, optionKinds, type OptionTable, systemClock } from "@throughline/core/internal";
import { conformanceCases } from "./conformance-cases.ts";
import type { ConformanceCase } from "./conformance-case.ts";
import { runCase } from "./run-case.ts";
import { setupTable, type ConformanceSetup } from "./store-under-test.ts";

/** Configures `runConformance`. */
export interface RunConformanceOptions extends ConformanceSetup {
  /** Selects the cases to run. @default all cases */
  readonly cases?: readonly ConformanceCase[] | undefined;
  /** Limits the time of one case, in milliseconds; a slower case fails. @default 60,000 */
  readonly caseTimeoutMs?: number | undefined;
}

/** States how one case of the kit ended. */
export interface ConformanceResult {
  /** States the id of the case, `<group>/<name>`. */
  readonly id: string;
  /** States whether the case ran and its demand is met. */
  readonly passed: boolean;
  /** Holds the error of the case; null when it passed or was skipped. */
  readonly error: unknown;
  /** States why the case did not apply; null when it ran. A skipped case has not passed. */
  readonly skipped: string | null;
}

const runTable: OptionTable<RunConformanceOptions> = {
  ...setupTable,
  cases: optionKinds.list,
  caseTimeoutMs: optionKinds.number({ min: 1 }),
};

/**
 * Runs the cases one after another, for programs without a test runner. A failed case does not throw; its result holds
 * the error.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option
 */
export async function runConformance(options: RunConformanceOptions): Promise<readonly ConformanceResult[]> {
  assertKnownOptions<RunConformanceOptions>("runConformance", options, runTable);
  const results: ConformanceResult[] = [];
  for (const each of options.cases ?? conformanceCases) {
    try {
      const skipped = await withinTime(runCase(each, options), options.caseTimeoutMs ?? 60_000);
      results.push({ id: each.id, passed: skipped === null, error: null, skipped });
    } catch (error) {
      results.push({ id: each.id, passed: false, error, skipped: null });
    }
  }
  return results;
}

async function withinTime<Value>(work: Promise<Value>, timeoutMs: number): Promise<Value> {
  const timer = new AbortController();
  const late = systemClock.sleep(timeoutMs, timer.signal).then(() => {
    throw new Error(`The case did not end within ${timeoutMs} ms.`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
    late.catch(() => undefined);
  }
}
