import {
  assertKnownOptions,
  type Fields,
  isColumnText,
  isSideRecord,
  optionKinds,
  type OptionTable,
  type RecordSource,
  throughlineDraft,
} from "@throughline/core/internal";
import type { Finding, SessionRecord } from "@throughline/core";
import { Buffer } from "node:buffer";
import { FindingLog } from "./finding-log.ts";
import { isFlatRecord } from "./flat-record.ts";
import { detachEnvelope, type LineEnvelope } from "./line-envelope.ts";
import { defaultMaxLineBytes } from "./line-splitter.ts";
import { maxRecordDepth, parseLine, type ParsedLine, type UnparsedReason } from "./parse-line.ts";
import { RecordIdBook, placeId } from "./record-id-book.ts";
import { RecordUpgrade } from "./record-upgrade.ts";
import { headerProblem, headerRecord, headerRecordId, readHeader, type TranscriptHeader } from "./transcript-header.ts";

/** Holds the options of `createTranscriptReader`. */
export interface TranscriptReaderOptions {
  /** States the path that the findings name. @default null */
  readonly path?: string | null | undefined;
  /** States the session key that the findings name. @default null */
  readonly key?: string | null | undefined;
  /** States the session id in the file's name. A header with another id is a finding. @default null */
  readonly sessionId?: string | null | undefined;
  /** Limits the length of lines that are parsed, in bytes. A longer line is kept but not parsed. @default 16 MiB */
  readonly maxLineBytes?: number | undefined;
}

/** Describes the position of a line in its file. */
export interface LinePlace {
  /** States the line number, from 1. */
  readonly line: number;
  /** States the byte offset of the line in the file, from 0. */
  readonly byteOffset: number;
  /** States the length of the whole line in bytes, when the splitter cut it. @default the length of the source */
  readonly sizeBytes?: number;
  /** States whether a line feed ends the line. @default true */
  readonly isTerminated?: boolean;
  /**
   * Holds the envelope when the caller has detached it, or null when the line has none. The reader then does not search
   * the line for an envelope.
   * @default the reader searches the line
   */
  readonly envelope?: LineEnvelope | null;
  /**
   * States that a Throughline store wrote the record, for a line without its envelope.
   * @default true when the line has an envelope
   */
  readonly isOurs?: boolean;
}

/** Holds one line and its record. Every line gives a record, also a blank or broken one. */
export interface TranscriptLine {
  /** States the line number, from 1. */
  readonly line: number;
  /** States the byte offset of the line in the file, from 0. */
  readonly byteOffset: number;
  /**
   * Holds the line as read, without Throughline's envelope. A line whose envelope carries the imported original gives
   * that original.
   */
  readonly source: RecordSource;
  /** Holds the record of the line, upgraded from older versions and flat rows. */
  readonly record: SessionRecord;
  /** True when the JSON of `source` is `record`, so that keeping the source is enough. */
  readonly isSourceCanonical: boolean;
  /** States whether the record is a side record, which belongs to no branch. */
  readonly side: boolean;
  /** States the record's timestamp in UTC milliseconds; null when it is not a time. */
  readonly tsMs: number | null;
  /**
   * States the head after this line. A main record moves the head. A `leaf` row or a Throughline rewind sets it, and so
   * does another program's row with another parent.
   */
  readonly headId: string | null;
  /** States whether the line sets the head although it is a side record. */
  readonly setsHead: boolean;
  /** Holds the data that Throughline stored beside the record; null for a line of another program. */
  readonly envelope: LineEnvelope | null;
  /** States whether the line is the first header. A later header is an ordinary record. */
  readonly isHeader: boolean;
  /** States why the line gives no record of its own; null when it gives one. */
  readonly unparsed: UnparsedReason | null;
}

/** Reads the lines of one file in order. Memory grows with the number of record ids only. */
export interface TranscriptReader {
  /** Reads the next line. The caller must pass the lines of a file in order. */
  push(line: RecordSource, place: LinePlace): TranscriptLine;
  /**
   * Ends the reading and returns all findings. Call it after the last line, because some findings need the whole file.
   */
  finish(): readonly Finding[];
  /** Lists the findings about the lines read so far. */
  readonly findings: readonly Finding[];
  /** Holds the first header; null until it is read, and when the file has none. */
  readonly header: TranscriptHeader | null;
  /** States the head after the last line. */
  readonly headId: string | null;
}

const nameKind = optionKinds.orNull(optionKinds.text);
export const readerTable: OptionTable<TranscriptReaderOptions> = {
  path: nameKind,
  key: nameKind,
  sessionId: nameKind,
  maxLineBytes: optionKinds.number({ min: 1 }),
};

/**
 * Creates a reader for transcripts of every version (absent, 1, 2, 3, 4). It also reads the flat records of the
 * tutorials, even mixed with other records in one file. The reader judges each line by itself. The same lines give the
 * same records, ids included, in every process. Later lines never change the records of earlier lines.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option
 */
export function createTranscriptReader(options: TranscriptReaderOptions = {}): TranscriptReader {
  assertKnownOptions<TranscriptReaderOptions>("createTranscriptReader", options, readerTable);
  return new TranscriptMachine(options);
}

interface Reading {
  readonly place: LinePlace;
  readonly source: RecordSource;
  readonly envelope: LineEnvelope | null;
}

interface Outcome {
  readonly record: SessionRecord;
  readonly isSourceCanonical: boolean;
  readonly isHeader?: boolean;
  readonly unparsed?: UnparsedReason;
}

class TranscriptMachine implements TranscriptReader {
  header: TranscriptHeader | null = null;
  headId: string | null = null;
  private readonly options: TranscriptReaderOptions;
  private readonly log: FindingLog;
  private readonly ids = new RecordIdBook();
  private readonly upgrade: RecordUpgrade;
  /** Maps each side record to the main record above it, because a side record may have a side record as its parent. */
  private readonly mainOfSide = new Map<string, string | null>();
  private hasRecord = false;
  private lastTimestamp = "1970-01-01T00:00:00.000Z";

  constructor(options: TranscriptReaderOptions) {
    this.options = options;
    this.log = new FindingLog({ path: options.path ?? null, key: options.key ?? null });
    this.upgrade = new RecordUpgrade(this.ids, this.log);
  }

  get findings(): readonly Finding[] {
    return this.log.findings;
  }

  finish(): readonly Finding[] {
    this.upgrade.finish();
    this.log.finish();
    return this.log.findings;
  }

  push(line: RecordSource, place: LinePlace): TranscriptLine {
    const detached = place.envelope === undefined && typeof line === "string" ? detachEnvelope(line) : null;
    const text = detached?.text ?? line;
    const envelope = place.envelope ?? detached?.envelope ?? null;
    const origin = originOf(envelope);
    const sizeBytes = place.sizeBytes ?? (typeof text === "string" ? Buffer.byteLength(text) : text.length);
    const parsed = parseLine(text, sizeBytes, {
      maxLineBytes: this.options.maxLineBytes ?? defaultMaxLineBytes,
      maxDepth: maxRecordDepth,
    });
    const reading: Reading = { place, source: origin ?? text, envelope };
    for (const remark of parsed.remarks) this.remark(remark.code, remark.message, place, parsed, remark.repaired);
    const outcome = this.read(parsed, reading);
    const { record } = outcome;
    const side = isSideRecord(record);
    const setsHead = side && this.followSide(record, envelope === null && place.isOurs !== true);
    if (!side) this.headId = record.id;
    this.followRewind(envelope);
    this.upgrade.settle(record.id, side, place.line);
    const tsMs = Date.parse(record.timestamp);
    if (Number.isFinite(tsMs)) this.lastTimestamp = record.timestamp;
    return {
      line: place.line,
      byteOffset: place.byteOffset,
      source: reading.source,
      record,
      isSourceCanonical: outcome.isSourceCanonical && origin === null,
      side,
      tsMs: Number.isFinite(tsMs) ? tsMs : null,
      headId: this.headId,
      setsHead,
      envelope,
      isHeader: outcome.isHeader ?? false,
      unparsed: outcome.unparsed ?? null,
    };
  }

  private read(parsed: ParsedLine, reading: Reading): Outcome {
    const { place } = reading;
    const { value } = parsed;
    if (value === null) return this.unparsed(parsed.reason ?? "malformed", place);
    // A Throughline row may hold the record of an imported header. Only a real header has no `parentId`.
    const isOwnRow = reading.envelope !== null && reading.envelope.seq > 0 && value["parentId"] !== undefined;
    if (value["type"] === "session" && !isOwnRow) return this.readSession(value, reading);
    const type = value["type"];
    if (!isFlatRecord(value) && !isColumnText(type, 128)) {
      this.log.add("RECORD_INVALID", "The record has no type that could be read.", placeOf(place));
      return this.unparsed("no-type", place);
    }
    if (!this.hasRecord) this.firstRecord(value, place);
    this.hasRecord = true;
    const context = {
      headId: this.headId,
      lastTimestamp: this.lastTimestamp,
      version: this.header?.version ?? null,
      place,
    };
    const upgraded = this.upgrade.read(value, context);
    return { record: upgraded, isSourceCanonical: upgraded === value && parsed.isExact };
  }

  private firstRecord(value: Fields, place: LinePlace): void {
    // One tutorial writes no headers, so a missing header before flat records is no problem.
    if (this.header !== null || isFlatRecord(value)) return;
    this.log.add("HEADER_MISSING", "The file begins without a header.", placeOf(place));
  }

  private readSession(value: Fields, { place, envelope }: Reading): Outcome {
    const header = readHeader(value, place.line);
    const isHeader = this.header === null && !this.hasRecord;
    if (isHeader) this.acceptHeader(header, place);
    else
      this.log.add(
        "HEADER_INVALID",
        "A second header stands inside the file; it is kept and has no effect.",
        placeOf(place),
      );
    // A Throughline header is not a record, so it must not claim an id that a record needs.
    const id = envelope?.seq === 0 ? headerRecordId(header) : this.ids.claim(headerRecordId(header));
    return {
      record: headerRecord(header, id, header.timestamp ?? this.lastTimestamp),
      isSourceCanonical: false,
      isHeader,
    };
  }

  private acceptHeader(header: TranscriptHeader, place: LinePlace): void {
    this.header = header;
    const problem = headerProblem(header);
    if (problem !== null) this.log.add("HEADER_INVALID", problem, placeOf(place));
    const expected = this.options.sessionId ?? null;
    if (expected !== null && header.sessionId !== null && header.sessionId !== expected) {
      const message = `The header names the session ${JSON.stringify(header.sessionId)}, the file name ${JSON.stringify(expected)}.`;
      this.log.add("HEADER_MISMATCH", message, placeOf(place));
    }
    if (header.version < 3)
      this.log.addOnce("VERSION_MIGRATED", `The file has version ${header.version}.`, placeOf(place));
  }

  private unparsed(reason: UnparsedReason, place: LinePlace): Outcome {
    const isTorn = reason === "malformed" && place.isTerminated === false;
    const stated: UnparsedReason = isTorn ? "torn" : reason;
    const { type, ...fields } = throughlineDraft("unparsed", { reason: stated });
    const id = this.ids.claim(placeId(place.line));
    return {
      record: { type, id, parentId: this.headId, timestamp: this.lastTimestamp, ...fields },
      isSourceCanonical: false,
      unparsed: stated,
    };
  }

  private remark(
    code: ParsedLine["remarks"][number]["code"],
    message: string,
    place: LinePlace,
    parsed: ParsedLine,
    repaired: boolean,
  ): void {
    if (place.isTerminated === false && parsed.reason === "malformed" && code === "LINE_MALFORMED") {
      this.log.add("TAIL_TORN", "The last line breaks off before its end.", placeOf(place));
    } else {
      this.log.add(code, message, { ...placeOf(place), repaired });
    }
  }

  /**
   * Returns true when a side record sets the head. pi continues from the last row of a file, whatever its type. After a
   * move to another branch, a new name or label may be the only row that shows the move.
   */
  private followSide(record: SessionRecord, isForeign: boolean): boolean {
    const { id, parentId, type } = record;
    const isOnSide = parentId !== null && this.mainOfSide.has(parentId);
    const main = isOnSide ? (this.mainOfSide.get(parentId) ?? null) : parentId;
    this.mainOfSide.set(id, main);
    if (type === "leaf") return this.setHead(record["targetId"]);
    if (!isForeign || record["appendMode"] === "side" || !rowsOfLeaf.has(type)) return false;
    return main !== null && this.setHead(main);
  }

  private setHead(target: unknown): boolean {
    if (target !== null && !(typeof target === "string" && this.ids.has(target))) return false;
    this.headId = target;
    return true;
  }

  /**
   * The envelope states the head that a rewind set. It takes effect on the last line of its append, because only then
   * is the append complete.
   */
  private followRewind(envelope: LineEnvelope | null): void {
    const [index, count] = envelope?.batch ?? [1, 1];
    if (envelope?.head !== undefined && index === count) this.headId = envelope.head;
  }
}

/** pi writes these side records at its current leaf, so they show where the session continues. */
const rowsOfLeaf: ReadonlySet<string> = new Set(["label", "session_info", "usage"]);

/**
 * A line may hold a converted record and carry the imported original in its envelope. Then the original is the source.
 */
function originOf(envelope: LineEnvelope | null): RecordSource | null {
  if (envelope?.source !== undefined) return envelope.source;
  if (envelope?.sourceBase64 !== undefined) return new Uint8Array(Buffer.from(envelope.sourceBase64, "base64"));
  return null;
}

function placeOf(place: LinePlace): { readonly line: number; readonly byteOffset: number } {
  return { line: place.line, byteOffset: place.byteOffset };
}
