import type { StoredRecord } from "@throughline/core";

/**
 * Why records are not in a context. `summarized`: before a compaction's kept part. `reset`: before a reset.
 * `edited`: an edit leaves them out. `excluded`: their writer keeps them from models. `invalid`: they cannot be read.
 * `other-branch`: they are not on the way to the head. `window`: a limit leaves them out.
 */
export type OmitReason = "summarized" | "reset" | "edited" | "excluded" | "invalid" | "other-branch" | "window";

/** Records that are left out for one reason, with nothing of the context between them. */
export interface OmittedRange {
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly reason: OmitReason;
}

/** What became of each record, by its place: in the context, left out for a reason, or without anything to say. */
export type RecordFate = "included" | OmitReason | undefined;

export function omittedRanges(records: readonly StoredRecord[], fates: readonly RecordFate[]): readonly OmittedRange[] {
  const ranges: OmittedRange[] = [];
  let open: { fromSeq: number; toSeq: number; reason: OmitReason } | null = null;
  for (let index = 0; index < records.length; index++) {
    const fate = fates[index];
    if (fate === undefined) continue;
    if (fate === "included") {
      open = null;
      continue;
    }
    const { seq } = records[index] as StoredRecord;
    if (open !== null && open.reason === fate) {
      open.toSeq = seq;
      continue;
    }
    open = { fromSeq: seq, toSeq: seq, reason: fate };
    ranges.push(open);
  }
  return ranges;
}
