import type { SessionEntry } from "@throughline/core";

/** What the entry keeps of a summary that is to be made again, so that a restart finds it without reading the log. */
export interface PendingRetry {
  readonly attempts: number;
  /** Not before this time; null: given up. */
  readonly nextAtMs: number | null;
  /** The lowest seq that is needed to make it. */
  readonly fromSeq: number;
}

const field = "summaryRetries";

/** The pending retries by the id of the compaction. What cannot be read is left out. */
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

/** The patch that sets or, with null, removes one; the field goes with its last one. */
export function retryPatch(
  entry: SessionEntry,
  id: string,
  retry: PendingRetry | null,
): Readonly<Record<string, unknown>> {
  const others = Object.entries(readRetries(entry)).filter(([key]) => key !== id);
  const all = retry === null ? others : [...others, [id, retry] as const];
  return { [field]: all.length === 0 ? undefined : Object.fromEntries(all) };
}
