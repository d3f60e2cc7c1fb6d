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
import { asText } from "./as-text.ts";
import type { ForeignReaderOptions, ForeignItem, UnitPlace } from "./foreign-format.ts";
import { IdNumbers } from "./packed-ids.ts";
import { headFields, tailFields } from "./sample-units.ts";

const defaultMaxUnitBytes = 16 * 1024 * 1024;

/**
 * A record adds nesting levels around the fields of its item. Both together must stay within the limit of the stores.
 */
const wrappingDepth = 12;

/** A record has this time when no item so far states one. */
const noTime = "1970-01-01T00:00:00.000Z";

/** The type leaves out the id, the parent and the time, which depend on the record's position. */
export interface RecordBody {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface RecordPlace {
  readonly id: string;
  readonly parentId: string | null;
  readonly timestamp: string;
}

/**
 * Creates the records of one session's items. The class parses the items, assigns ids and times, and collects findings.
 */
export class UnitRecords {
  readonly log: FindingLog;
  readonly #format: string;
  readonly #maxUnitBytes: number;
  /** The map holds the ids in use, each with a number that the format chooses. */
  readonly ids: IdNumbers = new IdNumbers();
  #lastTimestamp = noTime;
  /**
   * The field holds the last line that gave an id, and how many such ids it has. `placed` stores no ids, so the field
   * prevents a repeated id.
   */
  #placed: { readonly line: number; readonly count: number } = { line: 0, count: 0 };

  constructor(format: string, options: ForeignReaderOptions) {
    this.#format = format;
    this.#maxUnitBytes = options.maxUnitBytes ?? defaultMaxUnitBytes;
    this.log = new FindingLog({ path: options.path ?? null, key: options.key ?? null });
  }

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

  /** An item without a time gets the time of the item before. */
  timestamp(stated: unknown): string {
    const ms = readTimeMs(stated);
    if (ms !== null) this.#lastTimestamp = typeof stated === "string" && isIso(stated) ? stated : isoTime(ms);
    return this.#lastTimestamp;
  }

  get lastTimestamp(): string {
    return this.#lastTimestamp;
  }

  numberOf(id: string): number | undefined {
    return this.ids.get(id);
  }

  /**
   * Returns the id of a record: the program's id when it is free and valid, else an id derived from the line.
   * @param number stored with the id, and with the stated id when the record cannot have it
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

  /** Formats whose items never state ids use this method. It stores no id, so memory does not grow. */
  placed({ line }: UnitPlace): string {
    return this.#idOfPlace(line);
  }

  /**
   * Returns the first free id of a line. An import may read the beginning of an item, and later the grown item at the
   * same line. The log then has a record of each reading.
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
   * An unknown block may have the type of a block that records define, with other fields. A store refuses such a
   * message, so its fields are kept as data.
   */
  #readable(record: SessionRecord): SessionRecord {
    if (record.type !== "message" || findRecordProblem(record) === null) return record;
    const { id, parentId, timestamp, sourceFormat, derivedFrom, type, ...data } = record;
    const message = "The message cannot be read; it is kept and left out of the context.";
    this.log.add("RECORD_INVALID", message, { recordId: id });
    const origin = { sourceFormat, ...(derivedFrom === undefined ? {} : { derivedFrom }) };
    return { type: "custom", id, parentId, timestamp, ...origin, customType: this.customType(type), data };
  }

  derived(body: RecordBody, place: RecordPlace, first: string, index: number): SessionRecord {
    const { type, ...fields } = body;
    const { parentId, timestamp } = place;
    const derivedFrom = { id: first, index };
    const { id } = place;
    return this.#readable({ type, id, parentId, timestamp, sourceFormat: this.#format, derivedFrom, ...fields });
  }

  open(place: OpenPlace): OpenUnit {
    return new OpenUnit(this, place);
  }

  side(type: unknown, data: Fields, place: RecordPlace): ForeignItem {
    const body = { type: "custom", customType: this.customType(type), appendMode: "side", data };
    return { records: [this.record(body, place)], unparsed: null };
  }

  /** A head or a tail that is incomplete gives a finding. */
  frameFields(unit: RecordSource, place: UnitPlace, part: "head" | "tail"): Fields {
    const { line, byteOffset } = place;
    if (place.isTerminated === false)
      this.log.add("TAIL_TORN", `The document ends in its ${part}.`, { line, byteOffset, repaired: false });
    const text = typeof unit === "string" ? unit : new TextDecoder().decode(unit);
    if (text.length > this.#maxUnitBytes) return {};
    const fields = part === "head" ? headFields(text) : tailFields(text);
    return isNestedDeeper(fields, maxRecordDepth - wrappingDepth) ? {} : fields;
  }

  frameBody(part: "head" | "tail", data: Fields): RecordBody {
    return { type: "custom", customType: this.customType(part), appendMode: "side", documentPart: part, data };
  }

  /** Other programs may write any type, so one that is no valid name becomes `unknown`. */
  customType(type: unknown): string {
    const isName = typeof type === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(type);
    return `${this.#format}.${isName ? type : "unknown"}`;
  }

  /** @param what names the content of the item: `message` */
  tellUnreadable(what: string, recordId: string, { line, byteOffset }: UnitPlace): void {
    const message = `The ${what} of the line cannot be read; it is kept and left out of the context.`;
    this.log.add("RECORD_INVALID", message, { line, byteOffset, recordId });
  }

  /** @param parent is what the item states as its parent */
  tellOrphan(parent: unknown, recordId: string, { line, byteOffset }: UnitPlace): void {
    const message = `The parent ${JSON.stringify(asText(parent).slice(0, 100))} is nowhere in the file before it.`;
    this.log.add("ORPHAN_PARENT", message, { line, byteOffset, recordId });
  }

  /** A list that replaces the conversation was too long, and only its newest elements were read. */
  tellCut(what: string, count: number, most: number, recordId: string, { line, byteOffset }: UnitPlace): void {
    const message = `The line replaces the conversation by ${count} ${what}; the newest ${most} are in the context.`;
    this.log.add("RECORD_MISSING", message, { line, byteOffset, recordId });
  }

  /** An item that cannot be parsed still gives a record, so that no byte is lost. */
  unparsed(reason: UnparsedReason, place: UnitPlace, parentId: string | null): ForeignItem {
    const isTorn = reason === "malformed" && place.isTerminated === false;
    const stated: UnparsedReason = isTorn ? "torn" : reason;
    const body = throughlineDraft("unparsed", { reason: stated });
    const id = this.claim(undefined, place);
    return { records: [this.record(body, { id, parentId, timestamp: this.#lastTimestamp })], unparsed: stated };
  }
}

export interface OpenPlace {
  readonly id: string;
  readonly timestamp: string;
  readonly headId: string | null;
}

/**
 * Collects the records of one item. The first record has the item as its source, and each record follows the main
 * record before it.
 */
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

  /** At least one record must have been added. */
  close(): ForeignItem {
    return { records: this.#made as [SessionRecord, ...SessionRecord[]], unparsed: null };
  }
}

export function derivedId(first: string, index: number): string {
  return `${first}~d${index}`;
}

/** No record refers to a longer id, so keeping it would waste memory. */
const longestKept = 1024;
/**
 * The limit leaves room within the 256 characters of an id for a derived record's ending and for the number of a
 * repeated id.
 */
const longestOwn = 236;

function isFreeId(stated: unknown, taken: IdNumbers): stated is string {
  if (!isUsableRecordId(stated) || stated.length > longestOwn || taken.has(stated)) return false;
  // Only derived records may have such an id.
  return !/~d[0-9]{1,9}$/.test(stated);
}

function isIso(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.test(text);
}

/** An element's bytes include the comma and the white space before it, which JSON does not allow there. */
function withoutSeparator(unit: RecordSource): RecordSource {
  const [space, comma] = [0x20, 0x2c];
  const codeAt = (at: number): number => (typeof unit === "string" ? unit.charCodeAt(at) : (unit[at] ?? 0));
  let at = 0;
  while (at < unit.length && (codeAt(at) <= space || codeAt(at) === comma)) at++;
  return typeof unit === "string" ? unit.slice(at) : unit.subarray(at);
}

export function fieldsWithout(fields: Fields, named: ReadonlySet<string>): Fields {
  const rest = Object.entries(fields).filter(([name]) => !named.has(name));
  return Object.fromEntries(rest);
}
