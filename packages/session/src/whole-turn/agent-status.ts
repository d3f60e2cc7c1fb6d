import { checkpointStatus, type CheckpointStatus } from "@throughline/checkpoint/internal";
import { type FlushPhase, readFlushState, readRetries, type RetryLimits } from "@throughline/compaction/internal";
import type { SessionEntry } from "@throughline/core";
import type { Gauge } from "@throughline/tokens";

/** The state of a summarizer's breaker, as `createSummarizerBreakers` reports it. */
export interface SummarizerState {
  /** The summarizer's `name`. */
  readonly name: string;
  /** `closed`: it is asked. `open`: it is passed over until `retryInMs`. `half-open`: one call tests it. */
  readonly state: "closed" | "open" | "half-open";
  /** In a row, and how many take it out. */
  readonly failures: number;
  /** The number of failures in a row that opens the breaker. */
  readonly threshold: number;
  /** Until it is tried again; 0 when the next call tries it, null while it is asked. */
  readonly retryInMs: number | null;
  /** The message of its last failure; null when it has not failed. */
  readonly lastError: string | null;
}

/** Whoever keeps the breakers of the summarizers. */
export interface SummarizerStateSource {
  /** The state of each summarizer, in the order of the chain. */
  status(): readonly SummarizerState[];
}

/** The state of one summarizer, and when it is asked again. */
export interface SummarizerStatus extends SummarizerState {
  /** `retryInMs` in whole minutes, rounded up. */
  readonly retryInMinutes: number | null;
}

/** A summary that is to be made again, because no model wrote it or it no longer holds. */
export interface RetryStatus {
  /** Of the compaction. */
  readonly summaryId: string;
  /** `due`: the next run makes it. `waiting`: until `nextAtMs`. `given-up`: after `maxAttempts` failures. */
  readonly state: "due" | "waiting" | "given-up";
  /** The number of attempts that failed. */
  readonly attempts: number;
  /** The number of failed attempts after which it is given up. */
  readonly maxAttempts: number;
  /** Null: given up. */
  readonly nextAtMs: number | null;
  /** 0 when it is due; null: given up. */
  readonly retryInMs: number | null;
}

/** Where a session and everything around its turns stands. Plain data. */
export interface AgentSessionStatus {
  /** The session key, in its canonical form. */
  readonly key: string;
  /** The id of the session behind the key. */
  readonly sessionId: string;
  /** `interrupted`: a process that is gone left a turn open. */
  readonly turn: "idle" | "running" | "interrupted";
  /** How full the context window is. */
  readonly gauge: Gauge;
  /** Where compaction of the session stands. */
  readonly compaction: {
    /** Those there have been. */
    readonly count: number;
    /** Whether the next turn compacts before it calls the model. */
    readonly isDue: boolean;
    /** The size at which it is due; null when the window is not known. */
    readonly triggerTokens: number | null;
  };
  /** Where checkpoints of the session stand. */
  readonly checkpoint: CheckpointStatus;
  /** Where the memory flush of the session stands. */
  readonly flush: {
    /** Whether the settings ask the agent to store notes. */
    readonly isOn: boolean;
    /** Whether the agent will be asked, is being asked, or has answered in this cycle. */
    readonly phase: FlushPhase;
    /** The threshold that was asked last since the last compaction. */
    readonly askedPercent: number | null;
    /** What the agent did when it was asked last; null before that. */
    readonly flushActioned: boolean | null;
    /** Whether the agent wrote a memory file when it was asked last; null before that. */
    readonly flushWrote: boolean | null;
  };
  /** Summaries of this session that are to be made again. */
  readonly retries: readonly RetryStatus[];
  /** Of the summarizers, by name; empty where no breakers were given. */
  readonly summarizers: readonly SummarizerStatus[];
}

/** The pending retries of an entry, those that come first before the others. */
function retryStatus(
  entry: SessionEntry,
  nowMs: number,
  { maxAttempts = 8, maxDelayMs = 3_600_000 }: RetryLimits,
): readonly RetryStatus[] {
  return Object.entries(readRetries(entry))
    .map(([summaryId, { attempts, nextAtMs }]): RetryStatus => {
      const waitMs = nextAtMs === null ? null : Math.max(0, nextAtMs - nowMs);
      // A clock that was set back makes no wait longer.
      const retryInMs = waitMs !== null && waitMs > maxDelayMs ? 0 : waitMs;
      const state = retryInMs === null ? "given-up" : retryInMs === 0 ? "due" : "waiting";
      return { summaryId, state, attempts, maxAttempts, nextAtMs, retryInMs };
    })
    .toSorted((one, other) => (one.nextAtMs ?? Infinity) - (other.nextAtMs ?? Infinity));
}

/** What an entry says of everything but the turn, the gauge and the summarizers. */
export function entryStatus(
  entry: SessionEntry,
  { nowMs, limits, isFlushOn }: { readonly nowMs: number; readonly limits: RetryLimits; readonly isFlushOn: boolean },
): Pick<AgentSessionStatus, "checkpoint" | "flush" | "retries"> {
  const { phase, askedPercent, flushActioned, flushWrote } = readFlushState(entry);
  return {
    checkpoint: checkpointStatus(entry, nowMs),
    flush: { isOn: isFlushOn, phase, askedPercent, flushActioned, flushWrote },
    retries: retryStatus(entry, nowMs, limits),
  };
}

export function summarizerStatus(states: SummarizerStateSource | null): readonly SummarizerStatus[] {
  return (states?.status() ?? []).map((state) => {
    const { retryInMs } = state;
    return { ...state, retryInMinutes: retryInMs === null ? null : Math.ceil(retryInMs / 60_000) };
  });
}
