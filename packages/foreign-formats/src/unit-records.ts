import { Buffer } from "node:buffer";
import type { RecordSource } from "@throughline/core/internal";
import type { SessionRecord } from "@throughline/core";
import {
  findRecordProblem,
  isNestedDeeper,
  isSideRecord,
  throughlineDraft,
  type Fields,
} from "@throughline/core/internal";
import {
  FindingLog,
  isUsableRecordId,
  maxRecordDepth,
  parseLine,
  placeId,
  readTimeMs,
  isoTime,
  type ParsedLine,
  type UnparsedReason,
} from "@throughline/openclaw-format/internal";
import type { ForeignReaderOptions, ForeignUnit, UnitPlace } from "./foreign-format.ts";
import { IdNumbers } from "./packed-ids.ts";
import { headFields, tailFields } from "./sample-units.ts";

const defaultMaxUnitBytes = 16 * 1024 * 1024;

/** What a record puts around the fields of its unit: both together are nested no deeper than a store takes. */
const wrappingDepth = 12;

/** The time of a record before which no unit stated one. */
const noTime = "1970-01-01T00:00:00.000Z";

/** A record without what its place gives it. */
export interface RecordBody {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Where a record stands. */
export interface RecordPlace {
  readonly id: string;
  readonly parentId: string | null;
  readonly timestamp: string;
}

/** Makes the records of one session's units: parses, numbers, dates them, and keeps what is found on the way. */
export class UnitRecords {
  readonly log: FindingLog;
  readonly #format: string;
  readonly #maxUnitBytes: number;
  /** Ids that are taken, with a number that the format gives them. */
  readonly ids: IdNumbers = new IdNumbers();
  #lastTimestamp = noTime;
  /** The unit that got the newest id made of a place, and how many such ids it has. */
  #placed: { readonly line: number; readonly count: number } = { line: 0, count: 0 };

  constructor(format: string, options: ForeignReaderOptions) {
    this.#format = format;
    this.#maxUnitBytes = options.maxUnitBytes ?? defaultMaxUnitBytes;
    this.log = new FindingLog({ path: options.path ?? null, key: options.key ?? null });
  }

  /** Reads the unit as a JSON object; what is odd about it is a finding. */
  parse(unit: RecordSource, place: UnitPlace): ParsedLine {
    const sizeBytes = place.sizeBytes ?? (typeof unit === "string" ? Buffer.byteLength(unit) : unit.length);
    const given = place.part === "element" && sizeBytes <= this.#maxUnitBytes ? withoutSeparator(unit) : unit;
    const parsed = parseLine(given, sizeBytes, {
      maxLineBytes: this.#maxUnitBytes,
      maxDepth: maxRecordDepth - wrappingDepth,
    });
    for (const { code, message, repaired } of parsed.remarks) {
      const isTorn = parsed.reason === "malformed" && place.isTerminated === false;
      const at = { line: place.line, byteOffset: place.byteOffset, repaired };
      if (isTorn) this.log.add("TAIL_TORN", "The last line is not complete.", at);
      else this.log.add(code, message, at);
    }
    return parsed;
  }

  /** The time a unit states, as records state it; else that of the unit before. */
  timestamp(stated: unknown): string {
    const ms = readTimeMs(stated);
    if (ms !== null) this.#lastTimestamp = typeof stated === "string" && isIso(stated) ? stated : isoTime(ms);
    return this.#lastTimestamp;
  }

  get lastTimestamp(): string {
    return this.#lastTimestamp;
  }

  /** The number that was given with an id; undefined for an id that nothing bears. */
  numberOf(id: string): number | undefined {
    return this.ids.get(id);
  }

  /**
   * The id a record gets: the one the program gave it where that is free and can be one, else one made of its place.
   * @param number kept with the id, and with the stated one when the record cannot have it
   */
  claim(stated: unknown, { line }: UnitPlace, number = -1): string {
    if (isFreeId(stated, this.ids)) {
      this.ids.set(stated, number);
      return stated;
    }
    const isUnusable = typeof stated === "string" && stated.length <= longestKept && !this.ids.has(stated);
    if (isUnusable) this.ids.set(stated, number);
    const id = this.#idOfPlace(line);
    this.ids.set(id, number);
    return id;
  }

  /** The id of a record whose unit states none, in a format in which no unit does: only the last one is remembered. */
  placed({ line }: UnitPlace): string {
    return this.#idOfPlace(line);
  }

  /**
   * The first id of a place that no record has. An import reads a unit that has grown as it was before, then as it is now, and
   * the log has a record of each reading.
   */
  #idOfPlace(line: number): string {
    const idOf = (count: number): string => (count === 1 ? placeId(line) : `${placeId(line)}~${count}`);
    let count = this.#placed.line === line ? this.#placed.count + 1 : 1;
    while (this.ids.has(idOf(count))) count++;
    this.#placed = { line, count };
    return idOf(count);
  }

  record(body: RecordBody, { id, parentId, timestamp }: RecordPlace): SessionRecord {
    const { type, ...fields } = body;
    return this.#readable({ type, id, parentId, timestamp, sourceFormat: this.#format, ...fields });
  }

  /**
   * A block that nobody knows may have a name that blocks have here, and a store takes no message that is none. It is kept
   * as data.
   */
  #readable(record: SessionRecord): SessionRecord {
    if (record.type !== "message" || findRecordProblem(record) === null) return record;
    const { id, parentId, timestamp, sourceFormat, derivedFrom, type, ...data } = record;
    const message = "The message cannot be read; it is kept and left out of the context.";
    this.log.add("RECORD_INVALID", message, { recordId: id });
    const origin = { sourceFormat, ...(derivedFrom === undefined ? {} : { derivedFrom }) };
    return { type: "custom", id, parentId, timestamp, ...origin, customType: this.customType(type), data };
  }

  /** A further record of the same unit. */
  derived(body: RecordBody, place: RecordPlace, first: string, index: number): SessionRecord {
    const { type, ...fields } = body;
    const { parentId, timestamp } = place;
    const derivedFrom = { id: first, index };
    const { id } = place;
    return this.#readable({ type, id, parentId, timestamp, sourceFormat: this.#format, derivedFrom, ...fields });
  }

  /** The records of a unit, gathered while it is read. */
  open(place: OpenPlace): OpenUnit {
    return new OpenUnit(this, place);
  }

  /** A unit that no model sees. */
  side(type: unknown, data: Fields, place: RecordPlace): ForeignUnit {
    const body = { type: "custom", customType: this.customType(type), appendMode: "side", data };
    return { records: [this.record(body, place)], unparsed: null };
  }

  /** The fields that stand before or behind the list of a document; one that is not there in whole is a finding. */
  frameFields(unit: RecordSource, place: UnitPlace, part: "head" | "tail"): Fields {
    const { line, byteOffset } = place;
    if (place.isTerminated === false)
      this.log.add("TAIL_TORN", `The document ends in its ${part}.`, { line, byteOffset, repaired: false });
    const text = typeof unit === "string" ? unit : new TextDecoder().decode(unit);
    if (text.length > this.#maxUnitBytes) return {};
    const fields = part === "head" ? headFields(text) : tailFields(text);
    return isNestedDeeper(fields, maxRecordDepth - wrappingDepth) ? {} : fields;
  }

  /** The record of what stands before or behind the list of a document. */
  frameBody(part: "head" | "tail", data: Fields): RecordBody {
    return { type: "custom", customType: this.customType(part), appendMode: "side", documentPart: part, data };
  }

  /** The type of a unit in the name of a record; other programs may write anything there. */
  customType(type: unknown): string {
    const isName = typeof type === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(type);
    return `${this.#format}.${isName ? type : "unknown"}`;
  }

  /** @param what the unit holds: `message` */
  tellUnreadable(what: string, recordId: string, { line, byteOffset }: UnitPlace): void {
    const message = `The ${what} of the line cannot be read; it is kept and left out of the context.`;
    this.log.add("RECORD_INVALID", message, { line, byteOffset, recordId });
  }

  /** Of a list that replaces the conversation, only the newest were taken. */
  tellCut(what: string, count: number, most: number, recordId: string, { line, byteOffset }: UnitPlace): void {
    const message = `The line replaces the conversation by ${count} ${what}; the newest ${most} are in the context.`;
    this.log.add("RECORD_MISSING", message, { line, byteOffset, recordId });
  }

  /** What a unit that is no record stands for. */
  unparsed(reason: UnparsedReason, place: UnitPlace, parentId: string | null): ForeignUnit {
    const isTorn = reason === "malformed" && place.isTerminated === false;
    const stated: UnparsedReason = isTorn ? "torn" : reason;
    const body = throughlineDraft("unparsed", { reason: stated });
    const id = this.claim(undefined, place);
    return { records: [this.record(body, { id, parentId, timestamp: this.#lastTimestamp })], unparsed: stated };
  }
}

/** Where the first record of a unit stands. */
export interface OpenPlace {
  readonly id: string;
  readonly timestamp: string;
  /** The head before the unit. */
  readonly headId: string | null;
}

/** A unit of several records: the first has the unit as its source, and each hangs on the main one before it. */
export class OpenUnit {
  headId: string | null;
  readonly #records: UnitRecords;
  readonly #place: OpenPlace;
  readonly #made: SessionRecord[] = [];

  constructor(records: UnitRecords, place: OpenPlace) {
    this.#records = records;
    this.#place = place;
    this.headId = place.headId;
  }

  get isEmpty(): boolean {
    return this.#made.length === 0;
  }

  /** Gives the id of the record. */
  add(body: RecordBody): string {
    const { id: first, timestamp } = this.#place;
    const id = this.isEmpty ? first : derivedId(first, this.#made.length);
    const place = { id, parentId: this.headId, timestamp };
    const record = this.isEmpty
      ? this.#records.record(body, place)
      : this.#records.derived(body, place, first, this.#made.length);
    this.#made.push(record);
    if (!isSideRecord(record)) this.headId = id;
    return id;
  }

  /** Call when at least one record was added. */
  close(): ForeignUnit {
    return { records: this.#made as [SessionRecord, ...SessionRecord[]], unparsed: null };
  }
}

/** The id of a further record of a unit. */
export function derivedId(first: string, index: number): string {
  return `${first}~d${index}`;
}

/** Of an id that is longer no record knows, and it is not worth the memory. */
const longestKept = 1024;
/** What a derived record's ending and a number behind a doubled id take of the 256 characters of an id. */
const longestOwn = 236;

function isFreeId(stated: unknown, taken: IdNumbers): stated is string {
  if (!isUsableRecordId(stated) || stated.length > longestOwn || taken.has(stated)) return false;
  // Such an id is given to derived records only.
  return !/~d[0-9]{1,9}$/.test(stated);
}

function isIso(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.test(text);
}

/** An element without the comma and the white space before it. */
function withoutSeparator(unit: RecordSource): RecordSource {
  const [space, comma] = [0x20, 0x2c];
  const codeAt = (at: number): number => (typeof unit === "string" ? unit.charCodeAt(at) : (unit[at] ?? 0));
  let at = 0;
  while (at < unit.length && (codeAt(at) <= space || codeAt(at) === comma)) at++;
  return typeof unit === "string" ? unit.slice(at) : unit.subarray(at);
}

/** The fields of a unit that are neither of these. */
export function fieldsWithout(fields: Fields, named: ReadonlySet<string>): Fields {
  const rest = Object.entries(fields).filter(([name]) => !named.has(name));
  return Object.fromEntries(rest);
}
