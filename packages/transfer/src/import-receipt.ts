import type { SessionEntry } from "@throughline/core";
import { supersededCount } from "./continued-line.ts";
import type { DocumentBeginning } from "./document-head.ts";
import type { ImportReceipt } from "./receipt-types.ts";

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
  return receipt.recordCount + (receipt.derivedCount ?? 0) + noteSeqs(receipt).length + supersededCount(receipt);
}

/**
 * The receipt of a document whose list has grown: what stood behind the list no longer does. Its record stays in the log, as
 * that of a line which went on.
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
 * The receipt of a document in which something else stands before its list: the records of its elements stay, and what stands
 * around them has new ones.
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

/** The receipt when so much has been read of a source of `sourceBytes`. */
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
