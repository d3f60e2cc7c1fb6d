import type { RecordSource } from "./record-draft.ts";
import type { SessionRecord } from "./record.ts";

/**
 * Selects the content of a read. `record`: the parsed record. `source`: also the exact line it came in. `head`:
 * neither, only size and checksum.
 */
export type ReadPayload = "record" | "source" | "head";

/** Holds the facts of a stored record without its content. */
export interface RecordHead {
  /** States the record's position in the session, from 1. */
  readonly seq: number;
  /** States the record's id. */
  readonly id: string;
  /** States the id of the record that this record follows; null at a root. */
  readonly parentId: string | null;
  /** States the record's type. */
  readonly type: string;
  /** States whether the record is a side record. */
  readonly side: boolean;
  /** States the writer's time in milliseconds since 1970; null when the line states no time. */
  readonly tsMs: number | null;
  /** States the time of the store's clock, in milliseconds since 1970; null for lines that another program wrote. */
  readonly storedAtMs: number | null;
  /** States the size of the record's line in bytes, without the line feed. */
  readonly bytes: number;
  /** States the CRC-32 of the stored bytes (encoded, under a codec); null for lines that another program wrote. */
  readonly crc: number | null;
  /**
   * States the role of a message, as the record spells it, in a read with `payload: "head"`. An outline therefore needs
   * no payloads. Null for every other record, for text that fits no column (over 256 characters), and under a codec.
   * Absent when a read returns the record, and from stores older than this part of the contract.
   */
  readonly role?: string | null;
  /** Names the tool that a result answers for; null or absent in the same cases as `role`. */
  readonly toolName?: string | null;
}

/** Holds a record with its position in the session. */
export interface StoredRecord extends RecordHead {
  /** Holds the record itself. */
  readonly record: SessionRecord;
}

/** Holds a stored record with the line it came from. */
export interface SourcedRecord extends StoredRecord {
  /**
   * Holds the imported line; for a record that Throughline wrote, the stored JSON. A line of another program may be too
   * long to be read. Then the field holds the JSON of the record that stands for the line, and `bytes` states the
   * length of the line.
   */
  readonly source: RecordSource;
  /** States whether the source's own JSON is the record: same id, parentId and fields. */
  readonly isSourceCanonical: boolean;
}

/** Names the type of the records that a read returns for its payload. */
export type RecordFor<Payload extends ReadPayload> = Payload extends "source"
  ? SourcedRecord
  : Payload extends "record"
    ? StoredRecord
    : RecordHead;

/** Holds a page of the records of a session. */
export interface RecordPage<Payload extends ReadPayload = "record"> {
  /** Holds the records, never none and never more than `capabilities.limits.pageRecords`. */
  readonly records: readonly RecordFor<Payload>[];
  /** States the session's last seq when the page was read. */
  readonly lastSeq: number;
}
