import type { AppendDraft, RecordDraft } from "@throughline/core";
import type { StoreLimits } from "@throughline/core/internal";
import { isSideRecord } from "@throughline/core/internal";

/**
 * Limits one append. A long history goes in several appends, so that a killed process does not start again from
 * nothing.
 */
const mostRecords = 500;
const mostCharacters = 4 * 1024 * 1024;

/**
 * Returns the first drafts that fit into one append. A draft that is derived from the draft before it goes into the
 * same append, because one item must not be split. The first item always goes whole, whatever its size.
 */
export function firstBatch(
  drafts: readonly AppendDraft[],
  { batchRecords }: Pick<StoreLimits, "batchRecords">,
): readonly AppendDraft[] {
  const most = Math.min(mostRecords, batchRecords);
  let characters = 0;
  let end = 0;
  while (end < drafts.length) {
    let next = end + 1;
    while (isDerived(drafts[next])) next += 1;
    for (const draft of drafts.slice(end, next)) characters += lengthOf(draft);
    if (end > 0 && (next > most || characters > mostCharacters)) break;
    end = next;
  }
  return drafts.slice(0, end);
}

/**
 * Returns true when a draft becomes a record of the conversation, which moves the head. A side record leaves the head.
 */
export function movesHead(draft: AppendDraft): boolean {
  const isSourced = "source" in draft && !("type" in draft);
  return !isSideRecord(isSourced ? (draft.record as RecordDraft) : draft);
}

function lengthOf(draft: AppendDraft): number {
  const isSourced = "source" in draft && !("type" in draft);
  return isSourced ? (draft as { readonly source: string }).source.length : JSON.stringify(draft).length;
}

/** Side records are exempt: a side record, such as a piece of a long item, may come with a later append. */
function isDerived(draft: AppendDraft | undefined): boolean {
  if (draft === undefined || !("derivedFrom" in draft) || draft["derivedFrom"] === undefined) return false;
  return draft["appendMode"] !== "side";
}
