/**
 * Records how much of a source a session holds, in the field `importedFrom` of its entry. It is written in the same
 * commit as the records that it counts, so that an interrupted import resumes exactly there.
 */
export interface ImportReceipt {
  /** The path is absolute. */
  readonly path: string;
  readonly format: string;
  /** Holds the session's id in the source; the store's id may differ when the id was in use. */
  readonly sessionId: string;
  /** Holds the id by which stores find the sessions of the source. @default `sessionId` */
  readonly sourceId?: string;
  /** Counts the bytes read from the file; `sha256` is their hash in hex. */
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly lineCount: number;
  /** Counts the records of those lines; lower than `lineCount` by the number of lost lines. */
  readonly recordCount: number;
  /** Counts the additional records of those lines. @default 0 */
  readonly derivedCount?: number;
  /** False when the last line had no line feed. */
  readonly endsWithLineFeed: boolean;
  /** True until a run has read the file to its end. Absent when the whole file was imported. */
  readonly isPartial?: true;
  /** True when the file began with Throughline's header, which is no record. */
  readonly hasOwnHeader?: boolean;
  /** Holds the head after those lines. Absent in receipts of older versions. */
  readonly headId?: string | null;
  /** Locates blobs of the entry: records without a line in the file. @default none */
  readonly notes?: { readonly fromSeq: number; readonly count: number };
  /** Covers a document up to the end of its list's last element. Absent when the end of the list was not read. */
  readonly list?: ListReceipt;
  /**
   * Lists lines that grew after they had been imported. `recordCount` excludes records that a later one
   * replaced. @default none
   */
  readonly continued?: readonly ContinuedLine[];
  /** Holds the transcript's path as the source's index stated it. */
  readonly sessionFile?: string;
  /** Holds the key from the source's index when the session could not have it. */
  readonly key?: string;
  /** Holds the key from the source's index. Absent without a key, and in receipts of older versions. */
  readonly sourceKey?: string;
  /** Holds the key that the caller asked for, even after a rename. Absent without such a request. */
  readonly askedKey?: string;
  /** Holds the time when the source archived the session, ISO 8601. */
  readonly archivedAt?: string;
  /** Holds the receipt of an import before this one. */
  readonly earlier?: ImportReceipt;
}

/** Covers an imported document up to the end of its list. */
export interface ListReceipt {
  readonly sizeBytes: number;
  readonly sha256: string;
  /** Names the record of the text behind the list. */
  readonly tailId: string;
  /** Describes the text before the list, which programs rewrite with the time. Absent in receipts of older versions. */
  readonly head?: {
    readonly id: string;
    readonly sizeBytes: number;
    /** Holds the SHA-256, in hex, of the bytes between the head and the end of the list's last element. */
    readonly listSha256: string;
  };
}

/**
 * Describes a line that was imported before its program had finished writing it. The record of its beginning stays in
 * the log, which is append-only.
 */
export interface ContinuedLine {
  /** Counts from 1. */
  readonly line: number;
  /** Counts the bytes of the line at its first import. */
  readonly sizeBytes: number;
  /** Names the record of that beginning. */
  readonly id: string;
  /**
   * Holds white space that followed a complete record: the record still covers the line, and an export adds this text.
   * Absent when another record covers the whole line; an exact export then leaves the first record out.
   */
  readonly rest?: string;
}
