import { isFields } from "./json-object.ts";
import { systemClock } from "./node/system-ports.ts";
import type { SessionState } from "./session-state.ts";

/** Describes the tool calls of a session that wait for a decision, as its entry states them. */
export interface WaitingCalls {
  /** Names the turn that ended with open calls. */
  readonly turnId: string;
  /** Holds the number of that turn. The calls do not wait any more once a later turn has begun. */
  readonly fence: number;
  /** States when the turn ended, in UTC milliseconds. */
  readonly sinceMs: number;
  /** Counts the calls without a decision. */
  readonly calls: number;
  /** Lists the deadlines of those calls that have one, in UTC milliseconds. Absent without any. */
  readonly deadlinesMs?: readonly number[];
}

/** Returns the sign without an empty list, so that the entry stays small. */
export function waitingSign({ deadlinesMs = [], ...sign }: WaitingCalls): WaitingCalls {
  return deadlinesMs.length === 0 ? sign : { ...sign, deadlinesMs };
}

/**
 * Counts the calls that wait for a decision, without those whose deadline is over.
 *
 * @param nowMs the time of this process, in UTC milliseconds
 */
export function countWaitingCalls(
  state: Pick<SessionState, "entry" | "head">,
  nowMs: number = systemClock.nowMs(),
): number {
  const { calls = 0, deadlinesMs = [] } = waitingCalls(state) ?? {};
  return Math.max(0, calls - deadlinesMs.filter((atMs) => atMs <= nowMs).length);
}

/**
 * Returns null for a session without waiting calls. A later turn has another number. A fork has no such field, and an
 * archived or rewound session loses it.
 */
export function waitingCalls({ entry, head }: Pick<SessionState, "entry" | "head">): WaitingCalls | null {
  const { waiting } = entry;
  if (!isFields(waiting)) return null;
  const { turnId, fence, sinceMs, calls, deadlinesMs } = waiting as Partial<Record<keyof WaitingCalls, unknown>>;
  if (typeof turnId !== "string" || fence !== head.fence) return null;
  if (typeof sinceMs !== "number" || typeof calls !== "number") return null;
  const deadlines = Array.isArray(deadlinesMs) ? (deadlinesMs as readonly unknown[]) : [];
  const times = deadlines.filter((atMs) => typeof atMs === "number");
  return waitingSign({ turnId, fence, sinceMs, calls, deadlinesMs: times });
}
