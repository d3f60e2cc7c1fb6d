import { hasErrorCode } from "@throughline/core";
import type { StoredRecord } from "@throughline/core";
import { buildContext } from "./build-context.ts";
import { walkBranch } from "./walk-branch.ts";

/** Sets which records of a session are shown. */
export interface RecordSelection {
  /** Includes the records that a compaction or a reset has removed from the context. */
  readonly isAll: boolean;
  /** Includes every record, also side records and records of other branches. */
  readonly isAllBranches: boolean;
  /** Shows only records with a higher sequence number; 0 shows all. */
  readonly afterSeq: number;
  /** Shows only records of this role, such as `user`; null shows all. */
  readonly role: string | null;
  /** Shows only this many of the newest chosen records; null shows all. */
  readonly tail: number | null;
}

export interface TailSelection extends RecordSelection {
  readonly tail: number;
}

/** Returns the role of a record under the name that `--role` accepts. */
export type RoleOf = (record: StoredRecord) => string | null;

/** Returns the chosen records in order. The branch is followed from `headId`. */
export function selectRecords(
  records: readonly StoredRecord[],
  headId: string | null,
  selection: RecordSelection,
  roleOf: RoleOf,
): readonly StoredRecord[] {
  const branch = selection.isAllBranches ? records : branchRecords(records, headId, selection.isAll);
  const chosen = branch.filter((record) => isChosen(record, selection, roleOf));
  return selection.tail === null ? chosen : chosen.slice(-selection.tail);
}

export function isChosen(record: StoredRecord, { afterSeq, role }: RecordSelection, roleOf: RoleOf): boolean {
  return record.seq > afterSeq && (role === null || roleOf(record) === role);
}

/** A context may leave out the records before a compaction or a reset. */
export function isBoundary({ type }: Pick<StoredRecord, "type">): boolean {
  return type === "compaction" || type === "reset";
}

function branchRecords(
  records: readonly StoredRecord[],
  headId: string | null,
  isAll: boolean,
): readonly StoredRecord[] {
  const { path } = walkBranch(records, headId);
  const firstSeq = isAll ? 0 : firstKeptSeq(records, headId);
  const boundaryId = path.findLast(isBoundary)?.id;
  return path.filter(({ seq, id }) => seq >= firstSeq || id === boundaryId);
}

/**
 * Returns the sequence number of the oldest record that a context would still hold verbatim. Returns 0 when no record
 * was summarized or reset.
 */
function firstKeptSeq(records: readonly StoredRecord[], headId: string | null): number {
  try {
    const { messages, omitted, summaryId } = buildContext(records, { headId });
    if (!omitted.some(({ reason }) => reason === "summarized" || reason === "reset")) return 0;
    const boundarySeq = records.find(({ id }) => id === summaryId)?.seq ?? 0;
    const kept = messages.filter(({ recordId }) => recordId !== summaryId).map(({ seq }) => seq);
    return kept.length > 0 ? kept.reduce((least, seq) => Math.min(least, seq)) : boundarySeq;
  } catch (error) {
    // Records of a newer version are readable for people, although no context may be built from them.
    if (hasErrorCode(error, "RECORD_FROM_NEWER_VERSION")) return 0;
    throw error;
  }
}
