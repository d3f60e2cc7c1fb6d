import type { SessionState } from "@throughline/core";

/** A session as a list shows it to a model and to programs. */
export interface SessionRow {
  readonly key: string;
  readonly sessionId: string;
  readonly label: string | null;
  readonly isArchived: boolean;
  /** Its key, where the session was spawned. */
  readonly spawnedBy: string | null;
  readonly spawnDepth: number;
  /** A turn of it runs. */
  readonly isBusy: boolean;
  readonly messageCount: number;
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
