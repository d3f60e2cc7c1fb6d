import type { SessionEntry } from "@throughline/core";

/**
 * Decides when a message is processed that arrives while a turn runs. `followup` runs a separate turn afterwards.
 * `collect` runs one turn for all waiting messages. `steer` adds the message before the next call of the running turn;
 * a leftover message gets its own turn. `steer-backlog` does both. `interrupt` aborts the running turn, and one turn
 * takes all waiting messages.
 */
type QueueBehavior = "followup" | "collect" | "steer" | "steer-backlog" | "interrupt";

export interface QueueSettings {
  readonly behavior: QueueBehavior;
  /** A turn of waiting messages starts this long after the newest of them arrived. */
  readonly debounceMs: number;
  /** Limits the number of waiting messages; null means no limit. */
  readonly cap: number | null;
  /**
   * Decides what happens when the queue is full: `new` refuses the arriving message, `old` refuses the message that
   * waited longest. `summarize` shortens that oldest message to a line of the next turn.
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

/** A longer pause would look like a lost message to the sender. */
const longestDebounceMs = 60_000;

/**
 * Reads `queueMode`, `queueDebounceMs`, `queueCap` and `queueDrop` of an entry. An unknown mode stays in the entry and
 * means `followup`. An invalid number is ignored, and the default applies.
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
