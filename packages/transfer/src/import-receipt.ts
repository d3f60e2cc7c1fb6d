import type { SessionEntry } from "@throughline/core";

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
  /**
   * Describes a file that began as a hand-off of another session. This session is a fork of the other one. `lineCount`
   * lines are the other session's, and the lines after them follow the record `headId`. @default none
   */
  readonly handOff?: { readonly lineCount: number; readonly headId: string | null };
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

/** Covers a document up to the end of the elements that were imported. */
export interface DocumentBeginning {
  readonly sizeBytes: number;
  readonly sha256: string;
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

const emptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

export function emptyReceipt(
  fields: Pick<ImportReceipt, "path" | "format" | "sessionId"> & Partial<ImportReceipt>,
): ImportReceipt {
  return { sizeBytes: 0, sha256: emptySha256, lineCount: 0, recordCount: 0, endsWithLineFeed: true, ...fields };
}

/** Returns null when the session was not imported. */
export function receiptOf(entry: SessionEntry): ImportReceipt | null {
  return readReceipt(entry["importedFrom"]);
}

export function readReceipt(receipt: unknown): ImportReceipt | null {
  if (typeof receipt !== "object" || receipt === null) return null;
  const { path, format, sessionId, sizeBytes, sha256, lineCount, recordCount, endsWithLineFeed } =
    receipt as Partial<ImportReceipt>;
  const isWhole =
    typeof path === "string" &&
    typeof format === "string" &&
    typeof sessionId === "string" &&
    typeof sizeBytes === "number" &&
    typeof sha256 === "string" &&
    typeof lineCount === "number" &&
    typeof recordCount === "number" &&
    typeof endsWithLineFeed === "boolean";
  return isWhole ? (receipt as ImportReceipt) : null;
}

/** Returns the seqs of records that have no line in the file. */
export function noteSeqs({ notes }: ImportReceipt): readonly number[] {
  return notes === undefined ? [] : Array.from({ length: notes.count }, (_, index) => notes.fromSeq + index);
}

/** Returns the receipts of this import and the earlier ones, newest first. */
export function receiptChain(entry: SessionEntry): readonly ImportReceipt[] {
  const chain: ImportReceipt[] = [];
  for (let receipt = receiptOf(entry); receipt !== null; receipt = readReceipt(receipt.earlier)) chain.push(receipt);
  return chain;
}

/** Counts all records of an import, including those without a line in the source. */
export function importedRecords(receipt: ImportReceipt): number {
  return receipt.recordCount + (receipt.derivedCount ?? 0) + noteSeqs(receipt).length + supersededCount(receipt);
}

/**
 * Builds the receipt of a document whose list has grown, because the text behind the list no longer follows there. Its
 * record stays in the log and is listed like that of a continued line.
 */
export function reopenedReceipt(receipt: ImportReceipt): ImportReceipt | null {
  const { list, ...fields } = receipt;
  if (list === undefined) return null;
  const { sizeBytes, sha256, tailId } = list;
  const tail = { line: receipt.lineCount, sizeBytes: receipt.sizeBytes - sizeBytes, id: tailId };
  return {
    ...fields,
    sizeBytes,
    sha256,
    lineCount: receipt.lineCount - 1,
    recordCount: receipt.recordCount - 1,
    endsWithLineFeed: true,
    continued: [...(receipt.continued ?? []), tail],
  };
}

/**
 * Builds the receipt of a document with changed text before its list. The records of the elements stay, and the text
 * around them gets new records.
 */
export function receiptOfNewHead(receipt: ImportReceipt, beginning: DocumentBeginning): ImportReceipt | null {
  const reopened = reopenedReceipt(receipt);
  const head = receipt.list?.head;
  if (reopened === null || head === undefined) return null;
  return {
    ...reopened,
    ...beginning,
    recordCount: reopened.recordCount - 1,
    continued: [{ line: 1, sizeBytes: head.sizeBytes, id: head.id }, ...(reopened.continued ?? [])],
  };
}

export function advanced(
  { isPartial: _before, list: _list, ...receipt }: ImportReceipt,
  read: Pick<
    ImportReceipt,
    "sizeBytes" | "sha256" | "lineCount" | "recordCount" | "derivedCount" | "endsWithLineFeed" | "headId" | "list"
  >,
  sourceBytes: number,
): ImportReceipt {
  return { ...receipt, ...read, ...(read.sizeBytes < sourceBytes ? { isPartial: true } : {}) };
}

/** Maps line numbers to earlier partial imports of that line that a later record replaced, oldest first. */
export function supersededPieces(receipt: ImportReceipt): ReadonlyMap<number, readonly ContinuedLine[]> {
  return Map.groupBy(superseded(receipt), ({ line }) => line);
}

export function supersededCount(receipt: ImportReceipt): number {
  return superseded(receipt).length;
}

function superseded({ continued = [] }: ImportReceipt): readonly ContinuedLine[] {
  return continued.filter(({ rest }) => rest === undefined);
}
