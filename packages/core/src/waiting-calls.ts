import { isFields } from "./json-object.ts";
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
}

/**
 * Returns null for a session without waiting calls. A later turn has another number. A fork has no such field, and an
 * archived or rewound session loses it.
 */
export function waitingCalls({ entry, head }: Pick<SessionState, "entry" | "head">): WaitingCalls | null {
  const { waiting } = entry;
  if (!isFields(waiting)) return null;
  const { turnId, fence, sinceMs, calls } = waiting as Partial<Record<keyof WaitingCalls, unknown>>;
  if (typeof turnId !== "string" || fence !== head.fence) return null;
  if (typeof sinceMs !== "number" || typeof calls !== "number") return null;
  return { turnId, fence, sinceMs, calls };
}
