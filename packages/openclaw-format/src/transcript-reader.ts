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
import { type Finding, type SessionRecord } from "@throughline/core";
import { Buffer } from "node:buffer";
import { FindingLog } from "./finding-log.ts";
import { isFlatRecord } from "./flat-record.ts";
import { detachEnvelope, type LineEnvelope } from "./line-envelope.ts";
import { defaultMaxLineBytes } from "./line-splitter.ts";
import { maxRecordDepth, parseLine, type ParsedLine, type UnparsedReason } from "./parse-line.ts";
import { RecordIdBook, placeId } from "./record-id-book.ts";
import { RecordUpgrade } from "./record-upgrade.ts";
import { headerProblem, headerRecord, headerRecordId, readHeader, type TranscriptHeader } from "./transcript-header.ts";

/** Options of `createTranscriptReader`. */
export interface TranscriptReaderOptions {
  /** Named in findings. */
  readonly path?: string | null;
  /** Named in findings. */
  readonly key?: string | null;
  /** The id the file name gives the session; a header that says otherwise is a finding. */
  readonly sessionId?: string | null;
  /** Longer lines are kept and not read. @default 16 MiB */
  readonly maxLineBytes?: number;
}

/** Where a line stands in its file, and what is known of it before it is read. */
export interface LinePlace {
  /** From 1. */
  readonly line: number;
  /** Where the line begins in the file, in bytes from 0. */
  readonly byteOffset: number;
  /** The whole line's length, when the splitter cut it off. @default the length of the source */
  readonly sizeBytes?: number;
  /** False for a last line without a line feed. @default true */
  readonly isTerminated?: boolean;
  /** Given when the envelope was taken off before (or there is none): the line is not looked through for one. */
  readonly envelope?: LineEnvelope | null;
  /** A record that a store of ours wrote, shown without its envelope. @default an envelope that is there says so */
  readonly isOurs?: boolean;
}

/** One line and the record it stands for. Every line stands for one, also a blank or broken one. */
export interface TranscriptLine {
  /** The number of the line, from 1. */
  readonly line: number;
  /** Where the line begins in the file, in bytes from 0. */
  readonly byteOffset: number;
  /** The line as it came, without an envelope of ours; for a line of ours that carries its origin, that origin. */
  readonly source: RecordSource;
  /** The record that the line stands for, upgraded from older versions and flat rows. */
  readonly record: SessionRecord;
  /** True when the JSON of `source` is `record`, so that keeping the source is enough. */
  readonly isSourceCanonical: boolean;
  /** Whether it is a side record, which belongs to no branch. */
  readonly side: boolean;
  /** The record's timestamp as a number; null when it is no time. */
  readonly tsMs: number | null;
  /**
   * The head after this line. A main record moves it. A `leaf` row or a rewind of ours sets it, and so does another
   * program's row with another parent.
   */
  readonly headId: string | null;
  /** The line is a side record, and set the head all the same. */
  readonly setsHead: boolean;
  /** What Throughline stored beside the record; null for a line of another program. */
  readonly envelope: LineEnvelope | null;
  /** True for the first header; a later one is a record like others. */
  readonly isHeader: boolean;
  /** Why the line stands for no record of its own; null when it does. */
  readonly unparsed: UnparsedReason | null;
}

/** Reads the lines of one file in order. Memory grows by the records' ids and by nothing else. */
export interface TranscriptReader {
  /** Reads the next line. The lines of a file must be given in order. */
  push(line: RecordSource, place: LinePlace): TranscriptLine;
  /** Call after the last line: some findings are known only then. */
  finish(): readonly Finding[];
  /** What is odd about the lines read so far. */
  readonly findings: readonly Finding[];
  /** The first header; null until it is read, and when the file has none. */
  readonly header: TranscriptHeader | null;
  /** The head after the last line. */
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
 * A reader for transcripts of every version (absent, 1, 2, 3, 4) and for the flat records of the tutorials, also mixed
 * in one file. It judges each line by itself. The same lines give the same records, ids included, in every process;
 * what was read of the first lines never changes by lines that follow.
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
  /** What side records hang on: the main record above them. */
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
    // A row of ours may hold the record an imported header stands for; only a header names no parent.
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
    // One tutorial writes no headers, so its flat records alone are no reason to complain.
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
    // A header of ours is no record and takes no id away from one.
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
   * Whether a side record sets the head. pi continues from the last row of a file, whatever it is. After a move to
   * another branch, a new name or label may be the only row that shows the move.
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

  /** A line of ours says where a rewind put the head; it counts once its append is complete. */
  private followRewind(envelope: LineEnvelope | null): void {
    const [index, count] = envelope?.batch ?? [1, 1];
    if (envelope?.head !== undefined && index === count) this.headId = envelope.head;
  }
}

/** Side records that pi writes where its own leaf is. */
const rowsOfLeaf: ReadonlySet<string> = new Set(["label", "session_info", "usage"]);

/** The origin a line of ours carries, when the line itself is only what it stands for. */
function originOf(envelope: LineEnvelope | null): RecordSource | null {
  if (envelope?.source !== undefined) return envelope.source;
  if (envelope?.sourceBase64 !== undefined) return new Uint8Array(Buffer.from(envelope.sourceBase64, "base64"));
  return null;
}

function placeOf(place: LinePlace): { readonly line: number; readonly byteOffset: number } {
  return { line: place.line, byteOffset: place.byteOffset };
}
