import type { SessionEntry } from "@throughline/core";
import { supersededCount, type ContinuedLine } from "./continued-line.ts";

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
  /** How much of the file has been read, and the SHA-256 of it, in hex. */
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly lineCount: number;
  /** Records made of those lines. Less than `lineCount` by what was lost. */
  readonly recordCount: number;
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

const emptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** The receipt of a file nothing has been read of yet. */
export function emptyReceipt(
  fields: Pick<ImportReceipt, "path" | "format" | "sessionId"> & Partial<ImportReceipt>,
): ImportReceipt {
  return { sizeBytes: 0, sha256: emptySha256, lineCount: 0, recordCount: 0, endsWithLineFeed: true, ...fields };
}

/** The receipt an entry holds; null when the session was not imported. */
export function receiptOf(entry: SessionEntry): ImportReceipt | null {
  return readReceipt(entry["importedFrom"]);
}

/** The same of an unknown value. */
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

/** The seqs of records that stand for no line of the file. */
export function noteSeqs({ notes }: ImportReceipt): readonly number[] {
  return notes === undefined ? [] : Array.from({ length: notes.count }, (_, index) => notes.fromSeq + index);
}

/** The receipt and those of the imports before it, newest first. */
export function receiptChain(entry: SessionEntry): readonly ImportReceipt[] {
  const chain: ImportReceipt[] = [];
  for (let receipt = receiptOf(entry); receipt !== null; receipt = readReceipt(receipt.earlier)) chain.push(receipt);
  return chain;
}

/** How many records an import has made, those included that stand for no line, or for none any more. */
export function importedRecords(receipt: ImportReceipt): number {
  return receipt.recordCount + noteSeqs(receipt).length + supersededCount(receipt);
}

/** The receipt when so much has been read of a source of `sourceBytes`. */
export function advanced(
  { isPartial: _before, ...receipt }: ImportReceipt,
  read: Pick<ImportReceipt, "sizeBytes" | "sha256" | "lineCount" | "recordCount" | "endsWithLineFeed" | "headId">,
  sourceBytes: number,
): ImportReceipt {
  return { ...receipt, ...read, ...(read.sizeBytes < sourceBytes ? { isPartial: true } : {}) };
}
