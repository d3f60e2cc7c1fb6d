/**
 * Holds a record as a caller appends it. An absent `id`, `parentId` or `timestamp` is filled in; a given id is kept.
 */
export interface RecordDraft {
  /** States the record's type; at most 128 characters. */
  readonly type: string;
  /** States the record's id, at most 256 characters and unique in its session. An absent id is created. */
  readonly id?: string;
  /**
   * States the record's parent. Absent means the head at the moment of the append. A value starts a branch, or keeps
   * the parent of a copied record.
   */
  readonly parentId?: string | null;
  /** States the time as ISO 8601 with milliseconds and Z. Absent means now. */
  readonly timestamp?: string;
  readonly [field: string]: unknown;
}

/** Holds the exact bytes of a line: text when they are well-formed UTF-8 without a byte order mark, else the bytes. */
export type RecordSource = string | Uint8Array;

/**
 * Holds a record that came from a file. Its line is authoritative and is always returned unchanged. `record` states the
 * meaning of a line whose JSON is not the record: an older version, a flat record, a duplicate id, an unparsable line.
 * It must then carry id, parentId and timestamp.
 */
export interface SourcedDraft {
  /** Holds the exact line of the file. */
  readonly source: RecordSource;
  /** States the meaning of the line. Absent means that the line's JSON is the record. */
  readonly record?: RecordDraft;
}

/** Holds a record to append: its fields, or the bytes of another program's line. */
export type AppendDraft = RecordDraft | SourcedDraft;

export function isSourcedDraft(draft: AppendDraft): draft is SourcedDraft {
  return "source" in draft && !("type" in draft);
}
