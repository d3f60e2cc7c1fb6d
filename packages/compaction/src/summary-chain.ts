import type { StoredRecord } from "@throughline/core";
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

export interface ChainedSummary {
  readonly stored: StoredRecord;
  readonly details: CompactionDetails;
  readonly summary: string;
  /** Holds the seq of the record or note with the text. */
  readonly writtenSeq: number;
  /** Is true when no model wrote the text. */
  readonly isPoor: boolean;
}

/**
 * Returns the compactions whose summaries can be rewritten, in the order of seq. The records may be the end of a log.
 * Compactions that another one replaced are left out.
 */
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

/** A note states its writer, which replaces the writer of the record. Notes of earlier versions state none. */
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

/**
 * Derives the range of a compaction that does not state it. The range starts at the first message that the previous
 * compaction kept. It ends before the first message that this one keeps.
 */
function rangeBefore(stored: StoredRecord, records: readonly StoredRecord[]): SummarizedRange | null {
  const until = records.filter(({ seq }) => seq < stored.seq);
  const { path } = walkBranch(until, stored.parentId);
  const previous = path.findLast(({ type, side }) => type === "compaction" && !side);
  const placeOf = (id: unknown): number => path.findIndex((record) => record.id === id);
  const begin = previous === undefined ? 0 : placeOf(previous.record["firstKeptEntryId"]);
  const kept = placeOf(stored.record["firstKeptEntryId"]);
  // The first kept record is missing, so the summary covers everything before the compaction.
  const removed = path
    .slice(Math.max(begin, 0), kept === -1 ? path.length : kept)
    .filter(({ type, side }) => type === "message" && !side);
  const [first, last] = [removed[0], removed.at(-1)];
  const previousSummaryId = previous?.id ?? null;
  if (first !== undefined && last !== undefined)
    return { summarizedFromSeq: first.seq, summarizedToSeq: last.seq, previousSummaryId };
  // The records are only the end of a log, and the removed messages lie before them.
  return records[0]?.seq === 1 ? null : { summarizedFromSeq: 0, summarizedToSeq: 0, previousSummaryId };
}

function supersededId(record: StoredRecord["record"]): string | null {
  const details = record.type === "compaction" ? (record["details"] as { readonly supersedes?: unknown } | null) : null;
  return typeof details?.supersedes === "string" ? details.supersedes : null;
}

function noteOf(record: StoredRecord["record"], kind: string): Readonly<Record<string, unknown>> | null {
  if (throughlineKind(record) !== "note") return null;
  const data = record["data"] as Readonly<Record<string, unknown>> | null | undefined;
  return data?.["kind"] === kind ? data : null;
}

/** Returns why a summary needs a retry; null when a retry cannot improve it. */
export function retryReason(
  summary: ChainedSummary,
  records: readonly StoredRecord[],
): "poor" | "redacted" | "better-before" | null {
  if (isOutdatedAfter(summary.writtenSeq, summary, records)) return "redacted";
  if (summary.isPoor) return "poor";
  return betterBefore(summary, records).length > 0 ? "better-before" : null;
}

/** Checks the compaction's own record. A newer text does not remove redacted content from that record. */
export function mayRepeatRedacted(summary: ChainedSummary, records: readonly StoredRecord[]): boolean {
  return isOutdatedAfter(summary.stored.seq, summary, records);
}

/** Finds replaced compactions that may repeat redacted text, so that they can be redacted as well. */
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

/** Returns earlier summaries of the chain that were improved after this one was written, oldest first. */
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

/** Returns the id of the newest compaction or reset between the root and the head. */
export function newestBoundaryId(records: readonly StoredRecord[], headId: string | null): string | null {
  const { path } = walkBranch(records, headId);
  return path.findLast(({ type, side }) => !side && (type === "compaction" || type === "reset"))?.id ?? null;
}

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

/**
 * Returns the newest text of a compaction, including compactions of other programs. Returns null when the records do
 * not contain it.
 */
export function summaryTextOf(records: readonly StoredRecord[], id: string | null): string | null {
  if (id === null) return null;
  const note = records.findLast(({ record }) => noteOf(record, "summary-superseded")?.["summaryId"] === id);
  const text = note === undefined ? null : noteOf(note.record, "summary-superseded")?.["summary"];
  // A note also serves a compaction whose own record was redacted.
  const stored = records.find((record) => record.id === id && record.type === "compaction");
  const { summary } = (stored?.record ?? {}) as { readonly summary?: unknown };
  const newest = typeof text === "string" ? text : typeof summary === "string" ? summary : null;
  return newest === withheldSummary ? null : newest;
}

/** Returns the lowest seq that a rewrite reads: its own range, and the summary that it continues. */
export function neededFromSeq({ details }: ChainedSummary, records: readonly StoredRecord[]): number {
  const previous = records.find(({ id }) => id === details.previousSummaryId);
  return Math.min(details.summarizedFromSeq, previous?.seq ?? Infinity);
}
