import type { StoredRecord } from "./stored-records.ts";
import { throughlineKind } from "./throughline-record.ts";

/** The heading separates the summarizer's text from the parts that were copied unchanged from the conversation. */
export const summaryDetailsHeading = "[Taken from the conversation as it was]";

/** This text replaces a summary that may repeat redacted content, until the summary is written again. */
export const withheldSummary =
  "(A summary of the earlier messages was here. A part of them was redacted since, so the summary is withheld until it is written again. The session keeps the rest.)";

/**
 * Returns the summarizer's text without the added parts. The next summary builds on this text, and the parts are added
 * again.
 */
export function proseOf(summary: string): string {
  const at = summary.lastIndexOf(`\n\n${summaryDetailsHeading}\n`);
  return (at < 0 ? summary : summary.slice(0, at)).trim();
}

/** Returns the ids of summaries and checkpoints that may repeat content that was redacted after they were written. */
export function outdatedSummaryIds(records: readonly StoredRecord[]): ReadonlySet<string> {
  return new Set(records.flatMap(({ record }) => outdatedBy(record)));
}

export function isOutdatedSummary(records: readonly StoredRecord[], summaryId: string): boolean {
  const outdated = records.findLast(({ record }) => outdatedBy(record).includes(summaryId));
  if (outdated === undefined) return false;
  return !records.some(({ seq, record }) => {
    const data = seq > outdated.seq ? noteData(record) : null;
    return data?.kind === "summary-superseded" && data.summaryId === summaryId;
  });
}

function outdatedBy(record: StoredRecord["record"]): readonly string[] {
  const data = noteData(record);
  if (data?.kind !== "summary-outdated" || !Array.isArray(data.summaryIds)) return [];
  return data.summaryIds.filter((id) => typeof id === "string");
}

interface NoteData {
  readonly kind?: unknown;
  readonly summaryIds?: unknown;
  readonly summaryId?: unknown;
}

function noteData(record: StoredRecord["record"]): NoteData | null {
  if (throughlineKind(record) !== "note") return null;
  return (record["data"] as NoteData | null | undefined) ?? null;
}
