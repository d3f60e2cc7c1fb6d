import { hasErrorCode, ThroughlineError, type Clock, type Summarizer } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable, systemClock } from "@throughline/core/internal";
import { breakerSteps, type BreakerState, type BreakerStep } from "./breaker-steps.ts";

/** What is kept of one summarizer's failures; plain JSON. */
interface BreakerEntry {
  /** In a row, counted up to the threshold. */
  readonly failures: number;
  /** When it was last taken out; null while it is asked. */
  readonly openedAtMs: number | null;
  /** The newest failure, shortened; null after a success. */
  readonly lastError: string | null;
}

/** Everything to keep over a restart; plain JSON. */
export interface BreakerSnapshot {
  readonly v: 1;
  /** The failures of each summarizer by its name. */
  readonly summarizers: Readonly<Record<string, BreakerEntry>>;
}

/** For people: what a summarizer's breaker stands at. */
export interface BreakerStatus extends BreakerEntry {
  /** The name that `guard` was given. */
  readonly name: string;
  /** Whether the summarizer is asked, left out, or tried again. */
  readonly state: BreakerState;
  /** After how many failures in a row it is left out. */
  readonly threshold: number;
  /** Until it is tried again; 0 when the next call tries it, null while it is asked. */
  readonly retryInMs: number | null;
}

/** Options of `createSummarizerBreakers`. */
export interface SummarizerBreakersOptions {
  /** Failures in a row that take a summarizer out. @default 3 */
  readonly threshold?: number;
  /** How long it stays out. @default 1800000 */
  readonly resetMs?: number;
  /** A snapshot from before; one that cannot be read counts as none. @default none */
  readonly snapshot?: unknown;
  /** Called with every change, to be kept. What it throws costs the state its life beyond the process and no summary. */
  readonly onChange?: (snapshot: BreakerSnapshot) => void;
  /** Times how long a summarizer stays out. @default the system's */
  readonly clock?: Clock;
}

/** A breaker for each summarizer, so that one that does not work is not waited for with every summary. */
export interface SummarizerBreakers {
  /**
   * The summarizer behind the breaker of that name.
   * @throws {ThroughlineError} from `summarize`: SUMMARIZER_PAUSED while it is out, else what the summarizer throws
   */
  guard(name: string, summarizer: Summarizer): Summarizer;
  /** Returns what `snapshot` of the options restores after a restart. */
  snapshot(): BreakerSnapshot;
  /** Of every summarizer that was guarded or is in the snapshot, by name. */
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
 * Counts failures of summarizers and leaves those out that keep failing.
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
      // A disk that is full must not turn a summary that is there into a failure of its model.
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
    // Also of a snapshot that was kept under a higher threshold.
    this.entry = { ...entry, failures: Math.min(entry.failures, settings.threshold) };
    this.#name = name;
    this.#settings = settings;
    // What was tried when the process ended was not answered: it is tried again.
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
    // A probe that fails begins the pause anew, whatever the count says.
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

  /** A clock that was set back does not make the pause longer than it is. */
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
