import type { SessionEntry } from "@throughline/core";
import { supersededCount } from "./continued-line.ts";
import type { DocumentBeginning } from "./document-head.ts";
import type { ImportReceipt } from "./receipt-types.ts";

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
