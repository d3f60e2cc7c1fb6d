import { hasErrorCode, ThroughlineError, type Clock, type Summarizer } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable, systemClock } from "@throughline/core/internal";
import { breakerSteps, type BreakerState, type BreakerStep } from "./breaker-steps.ts";

/** Holds the failures of one summarizer as JSON. */
interface BreakerEntry {
  /** Counts consecutive failures, up to the threshold. */
  readonly failures: number;
  /** States the time when the summarizer was last excluded, in UTC milliseconds. Null while it is asked. */
  readonly openedAtMs: number | null;
  /** Holds the newest failure, shortened to 200 characters. Null after a success. */
  readonly lastError: string | null;
}

/** Holds the state of all breakers as JSON, so that it survives a restart. */
export interface BreakerSnapshot {
  readonly v: 1;
  /** Holds the failures of each summarizer, by name. */
  readonly summarizers: Readonly<Record<string, BreakerEntry>>;
}

/** Shows the state of a summarizer's breaker to people. */
export interface BreakerStatus extends BreakerEntry {
  /** States the name that `guard` received. */
  readonly name: string;
  /** States whether the summarizer is asked, excluded, or on trial. */
  readonly state: BreakerState;
  /** States the number of consecutive failures that exclude the summarizer. */
  readonly threshold: number;
  /**
   * States the milliseconds until a trial call. 0 means that the next call is the trial; null means that the summarizer
   * is asked.
   */
  readonly retryInMs: number | null;
}

/** Sets the threshold, the pause and the stored state of `createSummarizerBreakers`. */
export interface SummarizerBreakersOptions {
  /** Sets how many consecutive failures exclude a summarizer. @default 3 */
  readonly threshold?: number | undefined;
  /** Sets how long a summarizer stays excluded, in milliseconds. @default 1800000 */
  readonly resetMs?: number | undefined;
  /** Restores an earlier snapshot. An unreadable snapshot is ignored. @default none */
  readonly snapshot?: unknown;
  /**
   * Is called after each change, so that the caller can store the snapshot. If it throws, the state is not stored, and
   * the summary is still returned.
   */
  readonly onChange?: ((snapshot: BreakerSnapshot) => void) | undefined;
  /** Times how long a summarizer stays excluded. @default the system's */
  readonly clock?: Clock | undefined;
}

/** Holds a circuit breaker per summarizer, so that a failing summarizer does not delay every summary. */
export interface SummarizerBreakers {
  /**
   * Returns the summarizer behind the breaker of that name.
   * @throws {ThroughlineError} from `summarize`: SUMMARIZER_PAUSED while it is out, else what the summarizer throws
   */
  guard(name: string, summarizer: Summarizer): Summarizer;
  /**
   * Runs a call of another helper, such as an embedder, behind the breaker of that name. An abort by `signal` counts as no failure.
   * @throws {ThroughlineError} SUMMARIZER_PAUSED while it is out, else what the work throws
   */
  run<Result>(name: string, work: () => Promise<Result>, signal: AbortSignal | null): Promise<Result>;
  /** Returns the state that the option `snapshot` restores after a restart. */
  snapshot(): BreakerSnapshot;
  /** Returns the status of every summarizer that was guarded or is in the snapshot, sorted by name. */
  status(): readonly BreakerStatus[];
}

const table: OptionTable<SummarizerBreakersOptions> = {
  threshold: optionKinds.integer({ min: 1 }),
  resetMs: optionKinds.number({ min: 0 }),
  snapshot: optionKinds.any,
  onChange: optionKinds.callback,
  clock: optionKinds.objectWith("nowMs"),
};

/**
 * Creates breakers that count the failures of summarizers and exclude those that keep failing.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option
 */
export function createSummarizerBreakers(options: SummarizerBreakersOptions = {}): SummarizerBreakers {
  assertKnownOptions<SummarizerBreakersOptions>("createSummarizerBreakers", options, table);
  const { threshold = 3, resetMs = 1_800_000, clock = systemClock, onChange } = options;
  const breakers = new Map<string, Breaker>();
  const changed = (): void => {
    try {
      onChange?.(snapshot());
    } catch {
      // A full disk must not turn a finished summary into a failure of its model.
    }
  };
  const breakerOf = (name: string, entry: BreakerEntry = freshEntry): Breaker => {
    const found = breakers.get(name);
    if (found !== undefined) return found;
    const made = new Breaker(name, entry, { threshold, resetMs, clock, changed });
    breakers.set(name, made);
    return made;
  };
  const snapshot = (): BreakerSnapshot => ({
    v: 1,
    summarizers: Object.fromEntries([...breakers].map(([name, { entry }]) => [name, entry])),
  });
  for (const [name, entry] of readSnapshot(options.snapshot)) breakerOf(name, entry);
  return {
    guard(name, summarizer) {
      const breaker = breakerOf(name);
      return { summarize: (request) => breaker.run(() => summarizer.summarize(request), request.signal ?? null) };
    },
    run: (name, work, signal) => breakerOf(name).run(work, signal),
    snapshot,
    status: () =>
      [...breakers].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, breaker]) => breaker.status()),
  };
}

const freshEntry: BreakerEntry = { failures: 0, openedAtMs: null, lastError: null };

interface BreakerSettings {
  readonly threshold: number;
  readonly resetMs: number;
  readonly clock: Clock;
  readonly changed: () => void;
}

class Breaker {
  entry: BreakerEntry;
  readonly #name: string;
  readonly #settings: BreakerSettings;
  #state: BreakerState;

  constructor(name: string, entry: BreakerEntry, settings: BreakerSettings) {
    // The snapshot may come from a configuration with a higher threshold, so the count is capped.
    this.entry = { ...entry, failures: Math.min(entry.failures, settings.threshold) };
    this.#name = name;
    this.#settings = settings;
    // A trial call that was running when the process ended has no result, so the trial is repeated.
    this.#state = entry.openedAtMs === null ? "closed" : "open";
  }

  async run<Result>(work: () => Promise<Result>, signal: AbortSignal | null): Promise<Result> {
    const waitMs = this.#waitMs();
    if (this.#state === "half-open" || waitMs > 0) throw this.#paused(waitMs);
    if (this.#state === "open") this.#step("probed", this.entry);
    try {
      const result = await work();
      this.#step("succeeded", freshEntry);
      return result;
    } catch (error) {
      if (signal?.aborted === true && hasErrorCode(error, "ABORTED")) this.#step("aborted", this.entry);
      else this.#fail(error);
      throw error;
    }
  }

  status(): BreakerStatus {
    const { threshold } = this.#settings;
    const retryInMs = this.#state === "closed" ? null : this.#waitMs();
    return { name: this.#name, state: this.#state, threshold, retryInMs, ...this.entry };
  }

  #fail(error: unknown): void {
    const failures = Math.min(this.entry.failures + 1, this.#settings.threshold);
    const lastError = shortError(error);
    // A failed trial restarts the pause, whatever the count is.
    const isTripping = failures >= this.#settings.threshold || this.#state === "half-open";
    const openedAtMs = isTripping ? this.#settings.clock.nowMs() : this.entry.openedAtMs;
    this.#step(isTripping ? "tripped" : "failed", { failures, openedAtMs, lastError });
  }

  #step(step: BreakerStep, entry: BreakerEntry): void {
    const next = breakerSteps[this.#state][step];
    if (next === null) throw new ThroughlineError("INTERNAL", `A breaker that is ${this.#state} met ${step}.`);
    const isChanged = entry !== this.entry && JSON.stringify(entry) !== JSON.stringify(this.entry);
    this.#state = next;
    this.entry = entry;
    if (isChanged) this.#settings.changed();
  }

  /** Caps the wait at `resetMs`, so that a clock that was set back does not extend the pause. */
  #waitMs(): number {
    const { openedAtMs } = this.entry;
    if (openedAtMs === null) return 0;
    const { resetMs, clock } = this.#settings;
    return Math.min(resetMs, Math.max(0, openedAtMs + resetMs - clock.nowMs()));
  }

  #paused(waitMs: number): ThroughlineError {
    const { failures, lastError } = this.entry;
    const when = waitMs > 0 ? `is tried again in ${Math.ceil(waitMs / 60_000)} min` : "is being tried again";
    return new ThroughlineError("SUMMARIZER_PAUSED", `${this.#name} failed ${failures} times in a row and ${when}.`, {
      details: { name: this.#name, failures, retryInMs: waitMs, lastError },
    });
  }
}

function shortError(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.length <= 200 ? text : `${text.slice(0, 199).toWellFormed()}…`;
}

function readSnapshot(snapshot: unknown): readonly (readonly [string, BreakerEntry])[] {
  const { v, summarizers } = (snapshot ?? {}) as { readonly v?: unknown; readonly summarizers?: unknown };
  if (v !== 1 || typeof summarizers !== "object" || summarizers === null) return [];
  return Object.entries(summarizers).flatMap(([name, value]) => {
    const { failures, openedAtMs, lastError } = (value ?? {}) as Partial<Record<keyof BreakerEntry, unknown>>;
    if (!Number.isSafeInteger(failures)) return [];
    const entry: BreakerEntry = {
      failures: failures as number,
      openedAtMs: Number.isSafeInteger(openedAtMs) ? (openedAtMs as number) : null,
      lastError: typeof lastError === "string" ? lastError : null,
    };
    return [[name, entry] as const];
  });
}
