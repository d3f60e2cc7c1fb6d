import { checkpointStatus, type CheckpointStatus } from "@throughline/checkpoint/internal";
import { type FlushPhase, readFlushState, readRetries, type RetryLimits } from "@throughline/compaction/internal";
import type { SessionEntry } from "@throughline/core";
import type { Gauge } from "@throughline/tokens";

/** Describes the state of a summarizer's breaker, as `createSummarizerBreakers` reports it. */
interface SummarizerState {
  /** Holds the `name` of the summarizer. */
  readonly name: string;
  /**
   * States whether the summarizer is used. `closed`: it is called. `open`: it is skipped until `retryInMs`.
   * `half-open`: one call tests it.
   */
  readonly state: "closed" | "open" | "half-open";
  /** Counts the failures in a row. */
  readonly failures: number;
  /** Limits the failures in a row. The breaker opens when this number is reached. */
  readonly threshold: number;
  /**
   * Holds the time until the summarizer is tried again, in milliseconds. 0 when the next call tries it; null while it
   * is used.
   */
  readonly retryInMs: number | null;
  /** Holds the message of the last failure; null when the summarizer has not failed. */
  readonly lastError: string | null;
}

/** Reports the states of the summarizers' breakers. */
export interface SummarizerStateSource {
  /** Returns the state of each summarizer, in the order of the chain. */
  status(): readonly SummarizerState[];
}

/** Describes the state of one summarizer, and when it is tried again. */
export interface SummarizerStatus extends SummarizerState {
  /** Holds `retryInMs` in whole minutes, rounded up. */
  readonly retryInMinutes: number | null;
}

/** Describes a summary that must be rewritten, because no model wrote it or it no longer holds. */
export interface RetryStatus {
  /** Holds the id of the compaction with the summary. */
  readonly summaryId: string;
  /**
   * States when the summary is rewritten. `due`: in the next run. `waiting`: at `nextAtMs`. `given-up`: never, after
   * `maxAttempts` failures.
   */
  readonly state: "due" | "waiting" | "given-up";
  /** Counts the failed attempts. */
  readonly attempts: number;
  /** Limits the failed attempts. After this number the summary is given up. */
  readonly maxAttempts: number;
  /** States when the next attempt is due, in milliseconds since 1970; null when given up. */
  readonly nextAtMs: number | null;
  /** Holds the time until the next attempt, in milliseconds. 0 when it is due; null when given up. */
  readonly retryInMs: number | null;
}

/** Describes the state of a session and of the work around its turns, as plain data. */
export interface AgentSessionStatus {
  /** Holds the session key, in its canonical form. */
  readonly key: string;
  /** Holds the id of the session that the key refers to. */
  readonly sessionId: string;
  /** States whether a turn is open. `interrupted`: an ended process left a turn open. */
  readonly turn: "idle" | "running" | "interrupted";
  /** States how full the context window is. */
  readonly gauge: Gauge;
  /** Describes the compaction of the session. */
  readonly compaction: {
    /** Counts the compactions of the session. */
    readonly count: number;
    /** States whether the next turn compacts before it calls the model. */
    readonly isDue: boolean;
    /** Holds the size at which a compaction is due, in tokens; null when the window is unknown. */
    readonly triggerTokens: number | null;
  };
  /** Describes the checkpoints of the session. */
  readonly checkpoint: CheckpointStatus;
  /** Describes the memory flush of the session. */
  readonly flush: {
    /** States whether the settings ask the agent to store notes. */
    readonly isOn: boolean;
    /** States whether the agent will be asked, is being asked, or has answered in this cycle. */
    readonly phase: FlushPhase;
    /** Holds the threshold at which the agent was last asked since the last compaction; null when it was not asked. */
    readonly askedPercent: number | null;
    /** States what the agent did when it was last asked; null before that. */
    readonly flushActioned: boolean | null;
    /** States whether the agent wrote a memory file when it was last asked; null before that. */
    readonly flushWrote: boolean | null;
  };
  /** Lists the summaries of this session that must be rewritten. */
  readonly retries: readonly RetryStatus[];
  /** Lists the states of the summarizers by name. Empty without `breakers`. */
  readonly summarizers: readonly SummarizerStatus[];
}

/** The retries are sorted by their due time, earliest first. */
function retryStatus(
  entry: SessionEntry,
  nowMs: number,
  { maxAttempts = 8, maxDelayMs = 3_600_000 }: RetryLimits,
): readonly RetryStatus[] {
  return Object.entries(readRetries(entry))
    .map(([summaryId, { attempts, nextAtMs }]): RetryStatus => {
      const waitMs = nextAtMs === null ? null : Math.max(0, nextAtMs - nowMs);
      // A clock that was set back must not extend the wait, so a longer wait counts as due.
      const retryInMs = waitMs !== null && waitMs > maxDelayMs ? 0 : waitMs;
      const state = retryInMs === null ? "given-up" : retryInMs === 0 ? "due" : "waiting";
      return { summaryId, state, attempts, maxAttempts, nextAtMs, retryInMs };
    })
    .toSorted((one, other) => (one.nextAtMs ?? Infinity) - (other.nextAtMs ?? Infinity));
}

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
