/**
 * What an entry says of the file its session came from, in the field `importedFrom`. Written in the same commit as the
 * records it counts, so that an import that was cut off goes on where it stopped.
 */
export interface ImportReceipt {
  /** Absolute. */
  readonly path: string;
  readonly format: string;
  /** The session's id in the source; the store's may differ when that one was taken. */
  readonly sessionId: string;
  /** True when the source itself states that id. Absent: it was made of the name, and in receipts of before it was kept. */
  readonly statesId?: true;
  /** How much of the file has been read, and the SHA-256 of it, in hex. */
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly lineCount: number;
  /** Records made of those lines. Less than `lineCount` by what was lost. */
  readonly recordCount: number;
  /** Further records of those lines. @default 0 */
  readonly derivedCount?: number;
  /** False when the last line had no line feed. */
  readonly endsWithLineFeed: boolean;
  /** True until the run that reads the file has come to its end. Absent: all of the file that was there has been imported. */
  readonly isPartial?: true;
  /** True when the file began with a header of ours, which is no record. */
  readonly hasOwnHeader?: boolean;
  /** Where those lines put the head. Absent in receipts of before it was kept. */
  readonly headId?: string | null;
  /** Where blobs of the entry lie: records that no line of the file stands for. @default none */
  readonly notes?: { readonly fromSeq: number; readonly count: number };
  /** Of a document: what it was up to the end of its list's last element. Absent: the end of the list was not read. */
  readonly list?: ListReceipt;
  /** Lines that went on after they had been imported. `recordCount` counts only what stands for a line now. @default none */
  readonly continued?: readonly ContinuedLine[];
  /** The transcript's path as the source's index stated it. */
  readonly sessionFile?: string;
  /** The key the source's index stated, when the session could not have it. */
  readonly key?: string;
  /** The key the source's index stated. Absent: none, and in receipts of before it was kept. */
  readonly sourceKey?: string;
  /** The key the session was asked to go by, whatever it goes by now. Absent: none was asked for. */
  readonly askedKey?: string;
  /** When the source had put the session aside, ISO 8601. */
  readonly archivedAt?: string;
  /** Where the session had been imported from before. */
  readonly earlier?: ImportReceipt;
}

/** The beginning of a document that was imported, without what stands behind its list. */
export interface ListReceipt {
  readonly sizeBytes: number;
  readonly sha256: string;
  /** The record made of what stands behind the list. */
  readonly tailId: string;
  /** The text before the list, which programs rewrite with the time. Absent in receipts from before it was kept. */
  readonly head?: {
    /** The record made of it. */
    readonly id: string;
    readonly sizeBytes: number;
    /** The SHA-256 of what stands between it and the end of the list's last element, in hex. */
    readonly listSha256: string;
  };
}

/**
 * A line that had no line feed yet when it was imported, and went on afterwards: its program was in the middle of writing
 * it. The record made of its beginning stays in the log, which is append-only.
 */
export interface ContinuedLine {
  /** From 1. */
  readonly line: number;
  /** How much of it there was. */
  readonly sizeBytes: number;
  /** The record made of that. */
  readonly id: string;
  /**
   * White space that came after a whole record: the record stands for the line as before, and an export adds this. Absent:
   * another record stands for the whole line, and an export of the exact bytes leaves this one out.
   */
  readonly rest?: string;
}
