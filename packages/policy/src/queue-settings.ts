import type { SessionEntry } from "@throughline/core";

/**
 * What becomes of a message that arrives while a turn runs. `followup`: a turn of its own afterwards. `collect`: one turn for
 * all messages that wait. `steer`: the running turn takes it before its next call; what it does not take follows.
 * `steer-backlog`: both. `interrupt`: the running turn is aborted, and one turn takes all messages that wait.
 */
export type QueueBehavior = "followup" | "collect" | "steer" | "steer-backlog" | "interrupt";

/** How messages of a session wait for a running turn. */
export interface QueueSettings {
  readonly behavior: QueueBehavior;
  /** A turn of messages that waited begins this long after the newest of them arrived. */
  readonly debounceMs: number;
  /** The most messages that wait; null is no limit. */
  readonly cap: number | null;
  /**
   * What happens when one more arrives: `new` refuses it, `old` refuses the one that waited longest, `summarize` shortens
   * that one to a line of the next turn.
   */
  readonly drop: "old" | "new" | "summarize";
}

const behaviors: Readonly<Record<string, QueueBehavior>> = {
  followup: "followup",
  queue: "followup",
  collect: "collect",
  steer: "steer",
  "steer-backlog": "steer-backlog",
  "steer+backlog": "steer-backlog",
  interrupt: "interrupt",
};

/** A longer pause would look like a lost message. */
const longestDebounceMs = 60_000;

/**
 * Reads `queueMode`, `queueDebounceMs`, `queueCap` and `queueDrop` of an entry. A mode that is not known is kept in the entry
 * and means `followup`; a figure that cannot be meant counts as not given.
 */
export function readQueueSettings(entry: SessionEntry): QueueSettings {
  const { queueMode, queueDebounceMs, queueCap, queueDrop } = entry;
  const isKnown = typeof queueMode === "string" && Object.hasOwn(behaviors, queueMode);
  const isDebounce = typeof queueDebounceMs === "number" && queueDebounceMs > 0;
  return {
    behavior: (isKnown ? behaviors[queueMode] : undefined) ?? "followup",
    debounceMs: isDebounce ? Math.min(queueDebounceMs, longestDebounceMs) : 0,
    cap: Number.isSafeInteger(queueCap) && Number(queueCap) >= 1 ? Number(queueCap) : null,
    drop: queueDrop === "old" || queueDrop === "new" ? queueDrop : "summarize",
  };
}
