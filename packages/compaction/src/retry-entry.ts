import type { SessionEntry } from "@throughline/core";

/** The session entry keeps pending retries, so that a restart finds them without reading the log. */
export interface PendingRetry {
  readonly attempts: number;
  /** Holds the earliest time of the next attempt; null after the last attempt. */
  readonly nextAtMs: number | null;
  /** Holds the lowest seq that the rewrite reads. */
  readonly fromSeq: number;
}

const field = "summaryRetries";

/** Reads the pending retries by the id of the compaction. Unreadable values are left out. */
export function readRetries(entry: SessionEntry): Readonly<Record<string, PendingRetry>> {
  const value = entry[field];
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).filter(([, retry]) => isPending(retry))) as Record<
    string,
    PendingRetry
  >;
}

function isPending(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { attempts, nextAtMs, fromSeq } = value as Partial<Record<keyof PendingRetry, unknown>>;
  const isTime = nextAtMs === null || typeof nextAtMs === "number";
  return typeof attempts === "number" && typeof fromSeq === "number" && isTime;
}

export function newRetry(fromSeq: number): PendingRetry {
  return { attempts: 0, nextAtMs: 0, fromSeq };
}

/** Builds the patch that sets a retry, or removes it for null. Without a retry left, the patch removes the field. */
export function retryPatch(
  entry: SessionEntry,
  id: string,
  retry: PendingRetry | null,
): Readonly<Record<string, unknown>> {
  const others = Object.entries(readRetries(entry)).filter(([key]) => key !== id);
  const all = retry === null ? others : [...others, [id, retry] as const];
  return { [field]: all.length === 0 ? undefined : Object.fromEntries(all) };
}
