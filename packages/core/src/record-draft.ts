/** A record as a caller hands it over. `id`, `parentId` and `timestamp` are filled in; a given id is kept. */
export interface RecordDraft {
  /** The record's type; at most 128 characters. */
  readonly type: string;
  /** The record's id, at most 256 characters and unique in its session. Absent: a new one. */
  readonly id?: string;
  /** Absent: the head at the moment of the append. Given: a branch, or a record copied from elsewhere. */
  readonly parentId?: string | null;
  /** ISO 8601 with milliseconds and Z. Absent: now. */
  readonly timestamp?: string;
  readonly [field: string]: unknown;
}

/** The exact bytes of a line: text when they are well-formed UTF-8 without a byte order mark, else the bytes. */
export type RecordSource = string | Uint8Array;

/**
 * A record that came from a file: its line is the truth and is given back unchanged for ever. `record` says what
 * the line means where that is not simply its JSON: an older version, a flat record, a duplicate id, an unparsable line.
 * It must then carry id, parentId and timestamp.
 */
export interface SourcedDraft {
  /** The line, and where it came from. */
  readonly source: RecordSource;
  /** What the line means. Absent: its JSON is the record. */
  readonly record?: RecordDraft;
}

/** A record to append: its fields, or the bytes of another program's line. */
export type AppendDraft = RecordDraft | SourcedDraft;

export function isSourcedDraft(draft: AppendDraft): draft is SourcedDraft {
  return "source" in draft && !("type" in draft);
}
