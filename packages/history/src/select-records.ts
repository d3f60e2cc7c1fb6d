import { hasErrorCode } from "@throughline/core";
import type { StoredRecord } from "@throughline/core";
import { buildContext } from "./build-context.ts";
import { walkBranch } from "./walk-branch.ts";

/** Which records of a session are shown. */
export interface RecordSelection {
  /** Also what a compaction or a reset has left behind. */
  readonly isAll: boolean;
  /** Every record, side records and other branches too. */
  readonly isAllBranches: boolean;
  /** Shows only records with a higher sequence number; 0 shows all. */
  readonly afterSeq: number;
  /** Shows only records of this role, such as `user`; null shows all. */
  readonly role: string | null;
  /** Shows only this many of the newest chosen records; null shows all. */
  readonly tail: number | null;
}

/** The last records of a selection. */
export interface TailSelection extends RecordSelection {
  /** How many of the newest chosen records are shown. */
  readonly tail: number;
}

/** Whose words a record has, by the name that `--role` knows. */
export type RoleOf = (record: StoredRecord) => string | null;

/** The chosen ones of `records`, in order. The branch is followed from `headId`. */
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

/** Whether a record of the branch is one of those asked for. */
export function isChosen(record: StoredRecord, { afterSeq, role }: RecordSelection, roleOf: RoleOf): boolean {
  return record.seq > afterSeq && (role === null || roleOf(record) === role);
}

/** Whether a context may leave out what is before it. */
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

/** The oldest record that a context would still hold word for word; 0 when nothing was left behind. */
function firstKeptSeq(records: readonly StoredRecord[], headId: string | null): number {
  try {
    const { messages, omitted, summaryId } = buildContext(records, { headId });
    if (!omitted.some(({ reason }) => reason === "summarized" || reason === "reset")) return 0;
    const boundarySeq = records.find(({ id }) => id === summaryId)?.seq ?? 0;
    const kept = messages.filter(({ recordId }) => recordId !== summaryId).map(({ seq }) => seq);
    return kept.length > 0 ? kept.reduce((least, seq) => Math.min(least, seq)) : boundarySeq;
  } catch (error) {
    // What a newer version wrote can be shown even though no context may be built from it.
    if (hasErrorCode(error, "RECORD_FROM_NEWER_VERSION")) return 0;
    throw error;
  }
}
