import { decodeLine } from "@throughline/openclaw-format";
import type { SplitLine } from "@throughline/openclaw-format/internal";
import type { ImportReceipt } from "./import-receipt.ts";
import { createSourceReader, type SourceLine, type SourceReader } from "./source-reader.ts";
import type { SourceUnit } from "./source-units.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Limits the white space behind a record that the session entry keeps. */
export const maxRestBytes = 1024;

export interface LineGrowth {
  /** Counts the bytes of the line that the stored record covers. */
  readonly sizeBytes: number;
  /** False for a line above the size limit and for Throughline's file header, which have no record. */
  readonly hasRecord: boolean;
  /**
   * Holds the bytes added behind a record that is still complete. Null when the line is now another record or no
   * record.
   */
  readonly rest: string | null;
}

/**
 * Compares the last line of a receipt with the line in the file now. Returns null when they are equal, apart from the
 * line feed.
 */
export function growthOf(
  source: TranscriptSource,
  split: SplitLine,
  line: number,
  { receipt, maxBytes }: { readonly receipt: ImportReceipt; readonly maxBytes: number },
): LineGrowth | null {
  const importedBytes = receipt.sizeBytes - split.byteOffset;
  const isLast = line === receipt.lineCount && !receipt.endsWithLineFeed;
  // The end of a text may have been the start of a mark that begins the next item. Then the item is shorter now.
  const isOther = isText(source) ? split.sizeBytes !== importedBytes : split.sizeBytes > importedBytes;
  if (!isLast || !isOther) return null;
  const kept = receipt.continued?.find((one) => one.line === line && one.rest !== undefined);
  const sizeBytes = kept?.sizeBytes ?? importedBytes;
  if (sizeBytes > maxBytes) return { sizeBytes, hasRecord: false, rest: null };
  // The bytes that ended a document before may now be followed by another element, so the line is read again.
  if (source.layout !== undefined && source.layout.unit !== "line") return { sizeBytes, hasRecord: true, rest: null };
  const before = glance(source, split.bytes.subarray(0, sizeBytes));
  const isWhole = split.sizeBytes <= maxBytes && glance(source, split.bytes).unparsed === null;
  const isRecord = before.unparsed === null && isWhole;
  // A complete JSON object stays complete only if white space follows, so the rest holds white space alone.
  const rest = isRecord ? Buffer.from(split.bytes.subarray(sizeBytes)).toString("latin1") : null;
  return { sizeBytes, hasRecord: before.envelope?.seq !== 0, rest };
}

function isText({ layout }: TranscriptSource): boolean {
  return layout?.createCutter !== undefined;
}

/** Reads the beginning of an item as the earlier import did, so that the reader counts the id of its record as used. */
export function readPiece(
  reader: SourceReader,
  { bytes, byteOffset, part, isText }: SourceUnit,
  { line, sizeBytes }: { readonly line: number; readonly sizeBytes: number },
): SourceLine {
  // The bytes that ended a document then may differ now, so the reader gets an empty tail.
  if (part !== undefined && isText !== true) return reader.push("", { line, byteOffset, part: "tail" });
  const place = { line, byteOffset, sizeBytes, isTerminated: false, ...(part === undefined ? {} : { part }) };
  return reader.push(decodeLine(bytes.subarray(0, sizeBytes)), place);
}

/** Parses the line with a fresh reader, because its references to other lines do not matter here. */
function glance(source: TranscriptSource, bytes: Uint8Array): SourceLine {
  return createSourceReader(source, { maxLineBytes: Infinity }).push(decodeLine(bytes), { line: 1, byteOffset: 0 });
}
