import type { PendingRetry } from "./retry-entry.ts";
import { optionKinds, type OptionTable } from "@throughline/core/internal";

/** Names the states of a pending retry. `SPEC.md` is normative. */
export type RetryState = "due" | "waiting" | "running" | "improved" | "given-up";

export type RetryStep =
  /** The attempt started; this process holds the lease. */
  | "begun"
  | "elapsed"
  /** A summary passed the audit and was appended. */
  | "passed"
  /** No summary passed the audit, and attempts are left. */
  | "failed"
  /** Every summarizer is paused, so none was asked. This does not count as an attempt. */
  | "paused"
  /** No summary passed the audit, and no attempt is left. */
  | "exhausted"
  /** The caller aborted, the lease was lost, or the process ended. Nothing was written. */
  | "interrupted"
  /** Another process improved the summary. */
  | "overtaken"
  /** A redaction reached the summarized records, or an earlier summary was improved. */
  | "outdated";

/** Maps each state and step to the next state; null marks a step that cannot happen there. */
export const retrySteps: Readonly<Record<RetryState, Readonly<Record<RetryStep, RetryState | null>>>> = {
  due: row({ begun: "running", overtaken: "improved", outdated: "due" }),
  waiting: row({ elapsed: "due", overtaken: "improved", outdated: "due" }),
  running: row({
    passed: "improved",
    failed: "waiting",
    paused: "waiting",
    exhausted: "given-up",
    interrupted: "due",
    overtaken: "improved",
  }),
  improved: row({ outdated: "due" }),
  "given-up": row({ overtaken: "improved", outdated: "due" }),
};

/** Limits how often a failed summary is tried again, and how long the waits are. */
export interface RetryLimits {
  /** Limits the failed attempts; afterwards the summary stays unchanged. @default 8 */
  readonly maxAttempts?: number;
  /** Sets the wait after the first failure, in milliseconds; each further failure doubles it. @default 60000 */
  readonly firstDelayMs?: number;
  /** Limits the wait between two attempts, in milliseconds. @default 3600000 */
  readonly maxDelayMs?: number;
}

export const retryLimitsTable: OptionTable<RetryLimits> = {
  maxAttempts: optionKinds.integer({ min: 1, max: 1000 }),
  firstDelayMs: optionKinds.number({ min: 0, max: 86_400_000 }),
  maxDelayMs: optionKinds.number({ min: 0, max: 604_800_000 }),
};

/**
 * Derives the state of a pending retry from the time. The states running and improved are not stored, because the log
 * shows them. A clock that was set back makes no wait longer than the maximum.
 */
export function retryStateAt(
  retry: PendingRetry,
  nowMs: number,
  { maxDelayMs = longestDelayMs }: RetryLimits = {},
): "due" | "waiting" | "given-up" {
  if (retry.nextAtMs === null) return "given-up";
  const waitMs = retry.nextAtMs - nowMs;
  return waitMs > 0 && waitMs <= maxDelayMs ? "waiting" : "due";
}

const longestDelayMs = 3_600_000;

export function afterFailure(retry: PendingRetry, nowMs: number, limits: RetryLimits): PendingRetry {
  const attempts = retry.attempts + 1;
  if (attempts >= (limits.maxAttempts ?? 8)) return { ...retry, attempts, nextAtMs: null };
  const delayMs = Math.min((limits.firstDelayMs ?? 60_000) * 2 ** (attempts - 1), limits.maxDelayMs ?? longestDelayMs);
  return { ...retry, attempts, nextAtMs: nowMs + delayMs };
}

/** Returns the retry after a round in which every summarizer was paused. The round does not count as an attempt. */
export function afterPause(
  retry: PendingRetry,
  nowMs: number,
  pausedMs: number,
  { firstDelayMs = 60_000, maxDelayMs = longestDelayMs }: RetryLimits,
): PendingRetry {
  // A pause of 0 means that another caller is testing the summarizer right now, so this retry waits as after a failure.
  const delayMs = pausedMs > 0 ? pausedMs : firstDelayMs;
  return { ...retry, nextAtMs: nowMs + Math.min(delayMs, maxDelayMs) };
}

function row(steps: Partial<Record<RetryStep, RetryState>>): Record<RetryStep, RetryState | null> {
  return {
    begun: null,
    elapsed: null,
    passed: null,
    failed: null,
    paused: null,
    exhausted: null,
    interrupted: null,
    overtaken: null,
    outdated: null,
    ...steps,
  };
}
