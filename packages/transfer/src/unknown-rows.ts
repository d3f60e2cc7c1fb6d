import {
  isKnownRecordType,
  type RecordSource,
  serializeRecord,
  type SourcedRecord,
  sourceFormatOf,
} from "@throughline/core/internal";
import type { SessionRecord } from "@throughline/core";

/**
 * Writes records of unknown types as their original line. A line without an id or a parent cannot be part of the chain.
 * Its children then get the record above it as their parent.
 */
export class UnknownRows {
  /** Maps a record outside the chain to the nearest record above it that is inside. */
  readonly #above = new Map<string, string | null>();

  lineOf({ record, source, isSourceCanonical }: SourcedRecord): RecordSource {
    if (!isSourceCanonical && !isKnownRecordType(record.type) && sourceFormatOf(record) === null) {
      if (!isLinked(source, record)) this.#above.set(record.id, this.linked(record.parentId));
      return source;
    }
    const linked = this.#linkedRecord(record);
    return isSourceCanonical && linked === record ? source : serializeRecord(linked);
  }

  linked(id: string | null): string | null {
    const above = id === null ? undefined : this.#above.get(id);
    return above === undefined ? id : above;
  }

  #linkedRecord(record: SessionRecord): SessionRecord {
    const parentId = this.linked(record.parentId);
    const kept = record["firstKeptEntryId"];
    const firstKept = typeof kept === "string" ? (this.linked(kept) ?? kept) : kept;
    if (parentId === record.parentId && firstKept === kept) return record;
    return { ...record, parentId, ...(firstKept === undefined ? {} : { firstKeptEntryId: firstKept }) };
  }
}

/** True if the line states the record's id and parent. */
function isLinked(source: RecordSource, { id }: SessionRecord): boolean {
  if (typeof source !== "string") return false;
  try {
    const fields = JSON.parse(source) as Readonly<Record<string, unknown>>;
    return fields["id"] === id && (fields["parentId"] === null || typeof fields["parentId"] === "string");
  } catch {
    // The line was repaired when it was read, so its text is no JSON.
    return false;
  }
}
