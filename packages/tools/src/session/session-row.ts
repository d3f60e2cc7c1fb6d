import type { SessionState } from "@throughline/core";

/** A session as a list shows it to a model and to programs. */
export interface SessionRow {
  /** The session's key, which the other tools take. */
  readonly key: string;
  /** The session's id. */
  readonly sessionId: string;
  /** What the session is called, at most 120 characters; null when nobody named it. */
  readonly label: string | null;
  /** Whether the session is archived. */
  readonly isArchived: boolean;
  /** Its key, where the session was spawned. */
  readonly spawnedBy: string | null;
  /** How many generations lie above it; 0 for a session that nobody spawned. */
  readonly spawnDepth: number;
  /** A turn of it runs. */
  readonly isBusy: boolean;
  /** How many messages the session holds. */
  readonly messageCount: number;
  /** When the session was last active, UTC milliseconds. */
  readonly updatedAtMs: number;
}

const longestLabel = 120;

export function sessionRow(
  { ref, sessionId, entry, head, messageCount, updatedAtMs }: SessionState,
  nowMs: number,
): SessionRow {
  const { label, displayName, spawnedBy } = entry;
  const spawnDepth = entry["spawnDepth"];
  const name = [label, displayName].find((one) => typeof one === "string" && one.trim() !== "");
  return {
    key: ref.key,
    sessionId,
    label: typeof name === "string" ? name.slice(0, longestLabel).toWellFormed() : null,
    isArchived: ref.archiveId !== undefined,
    spawnedBy: typeof spawnedBy === "string" ? spawnedBy : null,
    spawnDepth: typeof spawnDepth === "number" ? spawnDepth : 0,
    isBusy: head.turn !== null && head.turn.leaseUntilMs > nowMs,
    messageCount,
    updatedAtMs,
  };
}
