import { type StoredRecord } from "@throughline/core";
import {
  isTombstone,
  outdatedSummaryIds,
  type Steps,
  throughlineKind,
  withheldSummary,
} from "@throughline/core/internal";
import { contextSteps, type NeutralMessage } from "@throughline/history/internal";
import { walkBranch } from "@throughline/history";
import { conversationMessages, flushIdsOf } from "./plan-compaction.ts";
import {
  readCompactionDetails,
  type CompactionDetails,
  type SummarizedRange,
  type SummaryUsage,
} from "./compaction-details.ts";

/** A compaction with the newest text of its summary. */
export interface ChainedSummary {
  readonly stored: StoredRecord;
  readonly details: CompactionDetails;
  readonly summary: string;
  /** Of the record or note that holds the text. */
  readonly writtenSeq: number;
  /** No model wrote the text. */
  readonly isPoor: boolean;
}

/** The compactions in a log or its end whose summaries can be made again, in the order of seq; one that another replaced is not among them. */
export function summaryChain(records: readonly StoredRecord[]): readonly ChainedSummary[] {
  const replaced = new Set(records.map(({ record }) => supersededId(record)));
  return records.flatMap((stored) => {
    const range = (): SummarizedRange | null => rangeBefore(stored, records);
    const details = stored.type === "compaction" ? readCompactionDetails(stored.record["details"], range) : null;
    const { summary } = stored.record as { readonly summary?: unknown };
    if (details === null || typeof summary !== "string" || replaced.has(stored.id)) return [];
    const better = records.findLast(({ record }) => noteOf(record, "summary-superseded")?.["summaryId"] === stored.id);
    const note = better === undefined ? null : noteOf(better.record, "summary-superseded");
    const text = note?.["summary"];
    if (better === undefined || typeof text !== "string") {
      return [{ stored, details, summary, writtenSeq: stored.seq, isPoor: details.needsRetry }];
    }
    const isPoor = note?.["needsRetry"] === true;
    return [{ stored, details: noteDetails(details, note), summary: text, writtenSeq: better.seq, isPoor }];
  });
}

/** Whoever wrote the text of a note stands in the note; notes of earlier versions do not say it. */
function noteDetails(of: CompactionDetails, note: Readonly<Record<string, unknown>> | null): CompactionDetails {
  const { usage: _, ...details } = of;
  const { provider, usage } = note ?? {};
  const isStated = typeof usage === "object" && usage !== null;
  return {
    ...details,
    provider: typeof provider === "string" ? provider : null,
    ...(isStated ? { usage: usage as SummaryUsage } : {}),
  };
}

/** What a compaction replaced that does not say so: from what the one before it kept up to what it keeps itself. */
function rangeBefore(stored: StoredRecord, records: readonly StoredRecord[]): SummarizedRange | null {
  const until = records.filter(({ seq }) => seq < stored.seq);
  const { path } = walkBranch(until, stored.parentId);
  const previous = path.findLast(({ type, side }) => type === "compaction" && !side);
  const placeOf = (id: unknown): number => path.findIndex((record) => record.id === id);
  const begin = previous === undefined ? 0 : placeOf(previous.record["firstKeptEntryId"]);
  const kept = placeOf(stored.record["firstKeptEntryId"]);
  // A first kept record that nobody wrote: everything before the compaction is behind the summary.
  const removed = path
    .slice(Math.max(begin, 0), kept === -1 ? path.length : kept)
    .filter(({ type, side }) => type === "message" && !side);
  const [first, last] = [removed[0], removed.at(-1)];
  const previousSummaryId = previous?.id ?? null;
  if (first !== undefined && last !== undefined)
    return { summarizedFromSeq: first.seq, summarizedToSeq: last.seq, previousSummaryId };
  // Of the end of a log: what was removed lies before it.
  return records[0]?.seq === 1 ? null : { summarizedFromSeq: 0, summarizedToSeq: 0, previousSummaryId };
}

/** The compaction that a better one took the place of. */
function supersededId(record: StoredRecord["record"]): string | null {
  const details = record.type === "compaction" ? (record["details"] as { readonly supersedes?: unknown } | null) : null;
  return typeof details?.supersedes === "string" ? details.supersedes : null;
}

function noteOf(record: StoredRecord["record"], kind: string): Readonly<Record<string, unknown>> | null {
  if (throughlineKind(record) !== "note") return null;
  const data = record["data"] as Readonly<Record<string, unknown>> | null | undefined;
  return data?.["kind"] === kind ? data : null;
}

/** Why a summary is to be made again; null when it is as good as it gets. */
export function retryReason(
  summary: ChainedSummary,
  records: readonly StoredRecord[],
): "poor" | "redacted" | "better-before" | null {
  if (isOutdatedAfter(summary.writtenSeq, summary, records)) return "redacted";
  if (summary.isPoor) return "poor";
  return betterBefore(summary, records).length > 0 ? "better-before" : null;
}

/** Whether the compaction's own record may repeat what was redacted, whatever took the place of its text since. */
export function mayRepeatRedacted(summary: ChainedSummary, records: readonly StoredRecord[]): boolean {
  return isOutdatedAfter(summary.stored.seq, summary, records);
}

/** Compactions that another took the place of and that may repeat what was redacted. */
export function replacedOutdatedIds(records: readonly StoredRecord[]): readonly string[] {
  const outdated = outdatedSummaryIds(records);
  const replaced = new Set(records.map(({ record }) => supersededId(record)));
  return records.flatMap(({ id, type, record }) =>
    type === "compaction" && outdated.has(id) && replaced.has(id) && !isTombstone(record) ? [id] : [],
  );
}

function isOutdatedAfter(afterSeq: number, { stored }: ChainedSummary, records: readonly StoredRecord[]): boolean {
  return records.some(({ seq, record }) => {
    const ids = seq > afterSeq ? noteOf(record, "summary-outdated")?.["summaryIds"] : null;
    return Array.isArray(ids) && ids.includes(stored.id);
  });
}

/** Summaries further up the chain that were improved after this one was written, oldest first. */
export function betterBefore(summary: ChainedSummary, records: readonly StoredRecord[]): readonly ChainedSummary[] {
  const byId = new Map(summaryChain(records).map((one) => [one.stored.id, one]));
  const better: ChainedSummary[] = [];
  let id = summary.details.previousSummaryId;
  while (id !== null) {
    const before = byId.get(id);
    if (before === undefined) break;
    byId.delete(id);
    if (before.writtenSeq > summary.writtenSeq) better.unshift(before);
    id = before.details.previousSummaryId;
  }
  return better;
}

/** The newest compaction or reset on the way to the head. */
export function newestBoundaryId(records: readonly StoredRecord[], headId: string | null): string | null {
  const { path } = walkBranch(records, headId);
  return path.findLast(({ type, side }) => !side && (type === "compaction" || type === "reset"))?.id ?? null;
}

/** The messages a compaction removed, read from the log again. */
export function* removedMessages(
  { stored, details }: ChainedSummary,
  records: readonly StoredRecord[],
): Steps<readonly NeutralMessage[]> {
  const { summarizedFromSeq, summarizedToSeq } = details;
  const until = records.filter(({ seq }) => seq < stored.seq);
  const { path } = walkBranch(until, stored.parentId);
  const isRemoved = ({ seq }: { readonly seq: number }): boolean => seq >= summarizedFromSeq && seq <= summarizedToSeq;
  const last = path.findLast((record) => isRemoved(record) && !record.side);
  if (last === undefined) return [];
  const flushIds = yield* flushIdsOf(until);
  const { messages } = yield* contextSteps(until, { headId: last.id });
  return yield* conversationMessages(
    messages.filter((message) => isRemoved(message) && message.role !== "compactionSummary"),
    flushIds,
  );
}

/** The newest text of any compaction, of ours or of another program; null when it is not in the log that was read. */
export function summaryTextOf(records: readonly StoredRecord[], id: string | null): string | null {
  if (id === null) return null;
  const note = records.findLast(({ record }) => noteOf(record, "summary-superseded")?.["summaryId"] === id);
  const text = note === undefined ? null : noteOf(note.record, "summary-superseded")?.["summary"];
  // A note stands also for a compaction whose own record was redacted.
  const stored = records.find((record) => record.id === id && record.type === "compaction");
  const { summary } = (stored?.record ?? {}) as { readonly summary?: unknown };
  const newest = typeof text === "string" ? text : typeof summary === "string" ? summary : null;
  return newest === withheldSummary ? null : newest;
}

/** The lowest seq that is needed to make a summary again: of what it covers, and of the one it builds on. */
export function neededFromSeq({ details }: ChainedSummary, records: readonly StoredRecord[]): number {
  const previous = records.find(({ id }) => id === details.previousSummaryId);
  return Math.min(details.summarizedFromSeq, previous?.seq ?? Infinity);
}
