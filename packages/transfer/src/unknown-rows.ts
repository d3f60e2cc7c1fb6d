import {
  isKnownRecordType,
  type RecordSource,
  serializeRecord,
  type SourcedRecord,
  sourceFormatOf,
} from "@throughline/core/internal";
import { type SessionRecord } from "@throughline/core";

/**
 * Records of types nobody knows go out as the line they came in, with nothing added. One whose line has no id, or names no
 * parent, can be in no chain there: what hangs on it hangs on the record above it instead.
 */
export class UnknownRows {
  /** For a record without a place in the chain: the nearest one above it that has one. */
  readonly #above = new Map<string, string | null>();

  /** The line of the record in the export. */
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

/** Whether the line itself says what the record is called and what it hangs on. */
function isLinked(source: RecordSource, { id }: SessionRecord): boolean {
  if (typeof source !== "string") return false;
  try {
    const fields = JSON.parse(source) as Readonly<Record<string, unknown>>;
    return fields["id"] === id && (fields["parentId"] === null || typeof fields["parentId"] === "string");
  } catch {
    // Read as a record with a part of it put right: its text is no JSON.
    return false;
  }
}
