import type { SessionState } from "@throughline/core";
import { sessionName } from "@throughline/core/internal";

/** Describes one session of a list, for models and for programs. */
export interface SessionRow {
  /** Holds the session key, which the other tools accept. */
  readonly key: string;
  /** Holds the session id. */
  readonly sessionId: string;
  /** Holds the label or the display name, at most 120 characters. Null when the session has neither. */
  readonly label: string | null;
  /** Holds the label, the title or the last part of the key, at most 120 characters. */
  readonly name: string;
  /** States whether the session is archived. */
  readonly isArchived: boolean;
  /** Holds the key of the session that spawned this session; null when it was not spawned. */
  readonly spawnedBy: string | null;
  /** Counts the generations above the session; 0 for a session that was not spawned. */
  readonly spawnDepth: number;
  /** States whether a turn of the session is running. */
  readonly isBusy: boolean;
  /** Counts the messages that the session holds. */
  readonly messageCount: number;
  /** States when the session was last active, in UTC milliseconds. */
  readonly updatedAtMs: number;
}

const longestLabel = 120;

export function sessionRow(
  { ref, sessionId, entry, head, messageCount, updatedAtMs }: SessionState,
  nowMs: number,
): SessionRow {
  const { label, displayName, spawnedBy } = entry;
  const spawnDepth = entry["spawnDepth"];
  const given = [label, displayName].find((one) => typeof one === "string" && one.trim() !== "");
  return {
    key: ref.key,
    sessionId,
    label: typeof given === "string" ? given.slice(0, longestLabel).toWellFormed() : null,
    name: sessionName({ ref, entry }).slice(0, longestLabel).toWellFormed(),
    isArchived: ref.archiveId !== undefined,
    spawnedBy: typeof spawnedBy === "string" ? spawnedBy : null,
    spawnDepth: typeof spawnDepth === "number" ? spawnDepth : 0,
    isBusy: head.turn !== null && head.turn.leaseUntilMs > nowMs,
    messageCount,
    updatedAtMs,
  };
}
