import { isFields } from "./json-object.ts";
import type { SessionRecord } from "./record.ts";
import { withheldSummary } from "./summary-parts.ts";
import { throughlineDraft, throughlineKind } from "./throughline-record.ts";

/** The facts that a tombstone states. */
interface TombstoneInfo {
  readonly side: boolean;
  readonly bytes: number;
  readonly reason: string;
  readonly redactedAtMs: number;
}

/**
 * The record that takes a redacted record's place. It states that something was here, when it went and why, and nothing of its
 * content. A compaction stays one, with the sentence that its summary is withheld: the start of a context depends on its place.
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

/** Whether a record is a tombstone. */
export function isTombstone(record: SessionRecord): boolean {
  if (throughlineKind(record) === "redaction") return true;
  const { type, data } = record;
  return type === "compaction" && isFields(data) && data["originalType"] === "compaction";
}

/** The fields of a compaction that say where it stands, and none that say what it summed up. */
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

/** Texts among the details of a compaction that are names: of the source, the summarizer and other summaries. */
const detailNames: ReadonlySet<string> = new Set(["source", "provider", "previousSummaryId", "supersedes"]);

function withoutTexts(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const kept = Object.entries(details).flatMap(([name, value]): [string, unknown][] => {
    if (Array.isArray(value)) return [[name, []]];
    if (typeof value === "string") return [[name, detailNames.has(name) ? value : null]];
    return typeof value === "object" && value !== null ? [] : [[name, value]];
  });
  return Object.fromEntries(kept);
}
