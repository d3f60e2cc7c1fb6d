import { isFields } from "./json-object.ts";
import type { SessionRecord } from "./record.ts";
import { isSameJson } from "./same-json.ts";
import { withheldSummary } from "./summary-parts.ts";
import { throughlineDraft, throughlineKind } from "./throughline-record.ts";

interface TombstoneInfo {
  readonly side: boolean;
  readonly bytes: number;
  readonly reason: string;
  readonly redactedAtMs: number;
}

/**
 * Returns the record that replaces a redacted record. It states that a record was here, when it was redacted and why,
 * and nothing of its content. A compaction keeps its type, because the start of a context depends on its place. Its
 * summary becomes the sentence that the summary is withheld.
 */
export function redactionTombstone(record: SessionRecord, info: TombstoneInfo): SessionRecord {
  const data = {
    reason: info.reason,
    redactedAtMs: info.redactedAtMs,
    originalType: record.type,
    originalBytes: info.bytes,
    side: info.side,
  };
  const { id, parentId, timestamp } = record;
  if (record.type === "compaction") return { ...withheldCompaction(record), data };
  const { type, ...fields } = throughlineDraft("redaction", data);
  return { type, id, parentId, timestamp, ...fields };
}

/** Returns false for a record that calls itself redacted and has any content beside what a tombstone states. */
export function isTombstone(record: SessionRecord): boolean {
  const { type, data } = record;
  if (!isFields(data) || (type !== "compaction" && throughlineKind(record) !== "redaction")) return false;
  const { reason, redactedAtMs, originalType, originalBytes: bytes, side } = data;
  if (typeof reason !== "string" || typeof originalType !== "string" || typeof side !== "boolean") return false;
  if (typeof redactedAtMs !== "number" || typeof bytes !== "number") return false;
  return isSameJson(
    record,
    redactionTombstone({ ...record, type: originalType }, { reason, redactedAtMs, bytes, side }),
  );
}

/** Keeps the fields that state the place of a compaction, and no field with summarized content. */
function withheldCompaction(record: SessionRecord): SessionRecord {
  const { id, parentId, timestamp, firstKeptEntryId, tokensBefore, appendMode, details } = record;
  return {
    type: "compaction",
    id,
    parentId,
    timestamp,
    summary: withheldSummary,
    ...(typeof firstKeptEntryId === "string" ? { firstKeptEntryId } : {}),
    ...(typeof tokensBefore === "number" ? { tokensBefore } : {}),
    ...(appendMode === "side" ? { appendMode } : {}),
    ...(isFields(details) ? { details: withoutTexts(details) } : {}),
  };
}

/**
 * These texts among the details of a compaction are names of the source, the summarizer and other summaries, not
 * content.
 */
const detailNames: ReadonlySet<string> = new Set(["source", "provider", "previousSummaryId", "supersedes"]);

function withoutTexts(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const kept = Object.entries(details).flatMap(([name, value]): [string, unknown][] => {
    if (Array.isArray(value)) return [[name, []]];
    if (typeof value === "string") return [[name, detailNames.has(name) ? value : null]];
    return typeof value === "object" && value !== null ? [] : [[name, value]];
  });
  return Object.fromEntries(kept);
}
