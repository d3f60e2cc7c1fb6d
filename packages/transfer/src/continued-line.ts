import { decodeLine } from "@throughline/openclaw-format";
import { type SplitLine } from "@throughline/openclaw-format/internal";
import type { ContinuedLine, ImportReceipt } from "./receipt-types.ts";
import { createSourceReader, type SourceLine, type SourceReader } from "./source-reader.ts";
import type { SourceUnit } from "./source-units.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** Of white space behind a record so much is kept in the entry. */
export const maxRestBytes = 1024;

/** The lines of a file, by number, of which beginnings were imported that no longer stand for them; the oldest first. */
export function supersededPieces(receipt: ImportReceipt): ReadonlyMap<number, readonly ContinuedLine[]> {
  return Map.groupBy(superseded(receipt), ({ line }) => line);
}

/** How many records stand for no line any more, because another one stands for the whole of it. */
export function supersededCount(receipt: ImportReceipt): number {
  return superseded(receipt).length;
}

function superseded({ continued = [] }: ImportReceipt): readonly ContinuedLine[] {
  return continued.filter(({ rest }) => rest === undefined);
}

/** What has become of a line that was imported without its end. */
export interface LineGrowth {
  /** How much of the line the record in the store stands for. */
  readonly sizeBytes: number;
  /** Whether the store has a record of it: not of a line too long, nor of a header of ours. */
  readonly hasRecord: boolean;
  /** What was added to a record that was whole and still is; null when the line is another record now, or none. */
  readonly rest: string | null;
}

/** Looks at the last line of a receipt as it is now. Null when it is what it was, its line feed aside. */
export function growthOf(
  source: TranscriptSource,
  split: SplitLine,
  line: number,
  { receipt, maxBytes }: { readonly receipt: ImportReceipt; readonly maxBytes: number },
): LineGrowth | null {
  const importedBytes = receipt.sizeBytes - split.byteOffset;
  const isLast = line === receipt.lineCount && !receipt.endsWithLineFeed;
  // The end of a text may have been the beginning of a mark that starts the next unit: then the unit is shorter now.
  const isOther = isText(source) ? split.sizeBytes !== importedBytes : split.sizeBytes > importedBytes;
  if (!isLast || !isOther) return null;
  const kept = receipt.continued?.find((one) => one.line === line && one.rest !== undefined);
  const sizeBytes = kept?.sizeBytes ?? importedBytes;
  if (sizeBytes > maxBytes) return { sizeBytes, hasRecord: false, rest: null };
  // What ended a document before may now be followed by another element.
  if (source.layout !== undefined && source.layout.unit !== "line") return { sizeBytes, hasRecord: true, rest: null };
  const before = glance(source, split.bytes.subarray(0, sizeBytes));
  const isWhole = split.sizeBytes <= maxBytes && glance(source, split.bytes).unparsed === null;
  const isRecord = before.unparsed === null && isWhole;
  // Behind a whole JSON object only white space leaves it one.
  const rest = isRecord ? Buffer.from(split.bytes.subarray(sizeBytes)).toString("latin1") : null;
  return { sizeBytes, hasRecord: before.envelope?.seq !== 0, rest };
}

function isText({ layout }: TranscriptSource): boolean {
  return layout?.createCutter !== undefined;
}

/** Reads the beginning of a unit as it was when it was imported: it claims the id of its record. */
export function readPiece(
  reader: SourceReader,
  { bytes, byteOffset, part, isText }: SourceUnit,
  { line, sizeBytes }: { readonly line: number; readonly sizeBytes: number },
): SourceLine {
  // What ended a document before, in its list or behind it, says nothing of what stands there now.
  if (part !== undefined && isText !== true) return reader.push("", { line, byteOffset, part: "tail" });
  const place = { line, byteOffset, sizeBytes, isTerminated: false, ...(part === undefined ? {} : { part }) };
  return reader.push(decodeLine(bytes.subarray(0, sizeBytes)), place);
}

/** The line by itself: what it refers to does not matter. */
function glance(source: TranscriptSource, bytes: Uint8Array): SourceLine {
  return createSourceReader(source, { maxLineBytes: Infinity }).push(decodeLine(bytes), { line: 1, byteOffset: 0 });
}
