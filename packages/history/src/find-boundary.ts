import { createFinding, danglingTailBytes, findRecordProblem } from "@throughline/core/internal";
import type { Finding, StoredRecord } from "@throughline/core";

export interface Boundary {
  readonly at: number;
  readonly type: "compaction" | "reset" | "checkpoint";
  /** States the first position before the boundary that stays; it equals `at` if no record before it stays. */
  readonly keptFrom: number;
  /** Holds the record with the summary; null for a reset. A checkpoint record is beside the path, not on it. */
  readonly summary: StoredRecord | null;
}

/** Returns the newest readable compaction or reset, or null when the whole path counts. */
export function findBoundary(
  path: readonly StoredRecord[],
  records: readonly StoredRecord[],
  findings: Finding[],
): Boundary | null {
  for (let at = path.length - 1; at >= 0; at--) {
    const stored = path[at] as StoredRecord;
    if (stored.side || (stored.type !== "compaction" && stored.type !== "reset")) continue;
    const problem = findRecordProblem(stored.record);
    if (problem !== null) {
      findings.push(createFinding("RECORD_INVALID", `${problem.path} ${problem.message}`, { recordId: stored.id }));
      continue;
    }
    const keptFrom = findKept(path, records, at, stored.record["firstKeptEntryId"], findings);
    return { at, type: stored.type, keptFrom, summary: stored.type === "compaction" ? stored : null };
  }
  return null;
}

/**
 * Returns the newest checkpoint whose summary covers more of the branch than the boundary does, or else the boundary.
 * Calls whose results come after the covered part stay with these results.
 */
export function findCheckpoint(
  path: readonly StoredRecord[],
  records: readonly StoredRecord[],
  boundary: Boundary | null,
): Boundary | null {
  const places = new Map(path.map(({ id }, index) => [id, index]));
  for (let index = records.length - 1; index >= 0; index--) {
    const stored = records[index] as StoredRecord;
    if (stored.type !== "checkpoint" || findRecordProblem(stored.record) !== null) continue;
    const { summary, coversToId } = stored.record["checkpoint"] as { summary: string; coversToId?: unknown };
    const covered = places.get(typeof coversToId === "string" ? coversToId : (stored.parentId ?? ""));
    if (summary.trim() === "" || covered === undefined || covered <= (boundary?.at ?? -1)) continue;
    let at = covered + 1;
    while (at > 0 && roleOf(path[at]) === "toolResult") at--;
    return { at, type: "checkpoint", keptFrom: at, summary: stored };
  }
  return boundary;
}

function findKept(
  path: readonly StoredRecord[],
  records: readonly StoredRecord[],
  at: number,
  firstKeptId: unknown,
  findings: Finding[],
): number {
  const boundary = path[at] as StoredRecord;
  // pi writes a compaction's own id when it keeps no record before it. A reset without an id means the same.
  if (firstKeptId === boundary.id || (boundary.type === "reset" && typeof firstKeptId !== "string")) return at;
  for (let index = at - 1; index >= 0; index--) if (path[index]?.id === firstKeptId) return index;
  // The id may name a side record, which is not on the path. Its position between its neighbors then counts.
  const side = records.find((record) => record.id === firstKeptId && record.side && record.seq < boundary.seq);
  if (side !== undefined) {
    const next = path.findIndex((record) => record.seq > side.seq);
    return Math.min(next < 0 ? at : next, at);
  }
  // A reset is meant to forget, so it keeps nothing when its id is invalid.
  if (boundary.type === "reset") return at;
  const keptFrom = tailStart(path, at);
  const message = `compaction ${boundary.id} keeps from ${String(firstKeptId)}, which is not before it on the branch; ${at - keptFrom} records before it are kept instead`;
  findings.push(createFinding("COMPACTION_DANGLING", message, { recordId: boundary.id, repaired: true }));
  return keptFrom;
}

/**
 * Returns the start of the newest whole turns that fit. The newest turn always stays. The result never lies before an
 * earlier boundary.
 */
function tailStart(path: readonly StoredRecord[], at: number): number {
  let bytes = 0;
  let start = at;
  for (let index = at - 1; index >= 0; index--) {
    const stored = path[index] as StoredRecord;
    if (stored.type === "compaction" || stored.type === "reset") break;
    bytes += stored.bytes;
    if (bytes > danglingTailBytes && start < at) break;
    if (isUserMessage(stored)) start = index;
  }
  return start;
}

function isUserMessage(stored: StoredRecord): boolean {
  return roleOf(stored) === "user";
}

function roleOf(stored: StoredRecord | undefined): unknown {
  const message = stored?.type === "message" ? stored.record["message"] : null;
  return typeof message === "object" && message !== null ? (message as { role?: unknown }).role : null;
}
