import type { PendingRetry } from "./retry-entry.ts";
import { optionKinds, type OptionTable } from "@throughline/core/internal";

/** Where a summary that is to be made again stands. `SPEC.md` is normative. */
export type RetryState = "due" | "waiting" | "running" | "improved" | "given-up";

export type RetryStep =
  /** Its turn has come, and this process has the lease. */
  | "begun"
  /** The time it waits for has come. */
  | "elapsed"
  /** A summary passed the audit and was appended. */
  | "passed"
  /** None did. */
  | "failed"
  /** Nobody was asked: every summarizer is out for a while. It is no attempt. */
  | "paused"
  /** None did, and it was the last attempt. */
  | "exhausted"
  /** The caller's signal, a lost lease, or the process ended: nothing was written. */
  | "interrupted"
  /** Somebody else improved it. */
  | "overtaken"
  /** What it is made of was redacted, or a summary before it became better. */
  | "outdated";

/** The state after each step; null where the step cannot happen. */
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

/** How often a failed summary is tried again, and how long the waits are. */
export interface RetryLimits {
  /** After this number of failed attempts the summary stays as it is. @default 8 */
  readonly maxAttempts?: number;
  /** After the first failure; each further one doubles it. @default 60000 */
  readonly firstDelayMs?: number;
  /** The longest wait between two attempts. @default 3600000 */
  readonly maxDelayMs?: number;
}

/** The kinds of the limits of retries. */
export const retryLimitsTable: OptionTable<RetryLimits> = {
  maxAttempts: optionKinds.integer({ min: 1, max: 1000 }),
  firstDelayMs: optionKinds.number({ min: 0, max: 86_400_000 }),
  maxDelayMs: optionKinds.number({ min: 0, max: 604_800_000 }),
};

/**
 * The state of a pending retry at a time. Running and improved ones are not stored: the log has them. A clock that was
 * set back makes no wait longer than the maximum.
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

/** What is kept after a failed attempt. */
export function afterFailure(retry: PendingRetry, nowMs: number, limits: RetryLimits): PendingRetry {
  const attempts = retry.attempts + 1;
  if (attempts >= (limits.maxAttempts ?? 8)) return { ...retry, attempts, nextAtMs: null };
  const delayMs = Math.min((limits.firstDelayMs ?? 60_000) * 2 ** (attempts - 1), limits.maxDelayMs ?? longestDelayMs);
  return { ...retry, attempts, nextAtMs: nowMs + delayMs };
}

/** What is kept when nobody could be asked before `pausedMs` are over. */
export function afterPause(
  retry: PendingRetry,
  nowMs: number,
  pausedMs: number,
  { firstDelayMs = 60_000, maxDelayMs = longestDelayMs }: RetryLimits,
): PendingRetry {
  // Somebody else is just trying it again.
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
