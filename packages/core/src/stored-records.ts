import type { RecordSource } from "./record-draft.ts";
import type { SessionRecord } from "./record.ts";

/** `record`: the parsed record. `source`: also the exact line it came in. `head`: neither, only size and checksum. */
export type ReadPayload = "record" | "source" | "head";

/** The facts of a stored record without its content. */
export interface RecordHead {
  /** The record's place in the session, from 1. */
  readonly seq: number;
  /** The record's id. */
  readonly id: string;
  /** The record that it follows; null at a root. */
  readonly parentId: string | null;
  /** The record's type. */
  readonly type: string;
  /** True for a side record. */
  readonly side: boolean;
  /** The writer's claim; null when the line states no time. */
  readonly tsMs: number | null;
  /** The store's clock; null for lines another program wrote. */
  readonly storedAtMs: number | null;
  /** Of the record's line, without the line feed. */
  readonly bytes: number;
  /** CRC-32 of the bytes as they are kept (coded, under a codec); null for lines another program wrote. */
  readonly crc: number | null;
  /**
   * Of a message, as the record spells them, in what a read with `payload: "head"` gives: so an outline needs no payloads. Null
   * for every other record, for text that fits no column (over 256 characters), and under a codec. Absent where a read gives
   * the record, and from stores made before it was part of the contract.
   */
  readonly role?: string | null;
  /** The tool that a result answers for; null, absent and left out as `role`. */
  readonly toolName?: string | null;
}

/** A record with its place in the session. */
export interface StoredRecord extends RecordHead {
  /** The record itself. */
  readonly record: SessionRecord;
}

/** A stored record with the line it came from. */
export interface SourcedRecord extends StoredRecord {
  /**
   * The line it was imported as; for records of our own the JSON they are kept as. Of another program's line that is too
   * long to be read: the JSON of the record that stands for it; `bytes` says how long the line is.
   */
  readonly source: RecordSource;
  /** True when the source's own JSON is the record: same id, parentId and fields. */
  readonly isSourceCanonical: boolean;
}

/** The record that a read gives for the payload it asks for. */
export type RecordFor<Payload extends ReadPayload> = Payload extends "source"
  ? SourcedRecord
  : Payload extends "record"
    ? StoredRecord
    : RecordHead;

/** A page of the records of a session. */
export interface RecordPage<Payload extends ReadPayload = "record"> {
  /** Never empty, never more than `capabilities.limits.pageRecords`. */
  readonly records: readonly RecordFor<Payload>[];
  /** The session's last seq when the page was read. */
  readonly lastSeq: number;
}
