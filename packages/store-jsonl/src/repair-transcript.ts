import type { Finding, SessionRecord } from "@throughline/core";
import { createRecentBranch, endOfValue, serializeRecord } from "@throughline/core/internal";
import { detachEnvelope, strangeTranscript } from "@throughline/openclaw-format/internal";
import { crc32 } from "node:zlib";
import { parseObject } from "./json-members.ts";
import { ownHeaderLine } from "./own-header.ts";
import { sealLine, type StoreEnvelope } from "./store-envelope.ts";
import { hasSeq, ParentSurvey, surveyLines, type SurveyedLine, type SurveyTarget } from "./transcript-survey.ts";

export interface RepairedLine {
  /** Counts lines of the original from 1; 0 stands for an added line. */
  readonly line: number;
  readonly byteOffset: number;
  readonly sizeBytes: number;
  readonly what: string;
}

export interface RepairedTranscript {
  readonly changes: readonly RepairedLine[];
  readonly findings: readonly Finding[];
}

interface Survey {
  readonly parents: ParentSurvey;
  readonly cycles: Set<string>;
  readonly glued: ReadonlyMap<number, readonly SessionRecord[]>;
  readonly unacknowledgedFrom: number;
  readonly hasHeader: boolean;
}

/**
 * Writes a transcript that every reader accepts: one complete record per line, unique ids, and existing parents. Valid
 * lines keep their bytes, and each other change is reported. It reads the file twice and keeps only ids in memory.
 */
export async function repairTranscript(
  target: SurveyTarget,
  createdAtMs: number,
  write: (line: string) => void,
): Promise<RepairedTranscript> {
  const findings: Finding[] = [];
  const survey = await surveyTranscript(target, (finding) => void findings.push(finding));
  const { ref, sessionId } = target.owner;
  const repair = new Repair(survey, ownHeaderLine({ sessionId, key: ref.key, createdAtMs }, ""), write);
  if (!survey.hasHeader) repair.addHeader();
  for await (const line of surveyLines(target, () => undefined)) repair.take(line);
  return { changes: repair.changes, findings };
}

async function surveyTranscript(target: SurveyTarget, say: (finding: Finding) => void): Promise<Survey> {
  const parents = new ParentSurvey();
  const found = new Map<number, readonly SessionRecord[]>();
  let hasHeader = false;
  let count = 0;
  let unacknowledged = 0;
  let seq = 0;
  for await (const surveyed of surveyLines(target, say)) {
    const { line, text, bytes, envelope, read } = surveyed;
    count = line;
    if (hasSeq(surveyed)) seq++;
    hasHeader ||= surveyed.ownHeader !== null;
    hasHeader ||= line === 1 && read.isHeader && (!isOwnRow(envelope) || isImportedHeader(surveyed));
    const mayBeGlued =
      read.unparsed === "malformed" || (read.unparsed === "torn" && strangeTranscript(bytes)?.endsInReturns === true);
    const records = mayBeGlued ? gluedRecords(text) : null;
    if (records === null) parents.add(read.record);
    else found.set(line, records);
    const [index, size] = envelope?.batch ?? [1, 1];
    if (envelope !== null) unacknowledged = index < size ? index : 0;
    else if (records !== null) unacknowledged = 0;
    else if (read.unparsed === "torn" || read.unparsed === "nul") unacknowledged++;
    else unacknowledged = 0;
  }
  if (seq - unacknowledged < target.acknowledgedSeq) unacknowledged = 0;
  // Ids of complete lines take precedence, also over earlier glued records.
  const glued = new Map<number, readonly SessionRecord[]>();
  for (const [line, records] of found) {
    const free: SessionRecord[] = [];
    for (const record of records) {
      free.push(freeOf(record, parents, line));
      parents.add(free.at(-1) ?? record);
    }
    glued.set(line, free);
  }
  // An empty file has no records, so it needs no header.
  return {
    parents,
    cycles: new Set(parents.cycles()),
    glued,
    unacknowledgedFrom: count - unacknowledged + 1,
    hasHeader: hasHeader || count === 0,
  };
}

function isImportedHeader({ line, text, isClean, envelope, read }: SurveyedLine): boolean {
  return line === 1 && isClean && read.isHeader && envelope?.seq === 1 && envelope.crc === crc32(text);
}

/** A header with a seq above 0 is a record. It was imported, or it is left from a record that was glued to a header. */
function isOwnRow(envelope: StoreEnvelope | null): boolean {
  return envelope !== null && envelope.seq > 0;
}

function freeOf(record: SessionRecord, parents: ParentSurvey, line: number): SessionRecord {
  return parents.has(record.id) ? { ...record, id: `${record.id}-line-${line}` } : record;
}

class Repair {
  readonly changes: RepairedLine[] = [];
  readonly #survey: Survey;
  readonly #header: string;
  readonly #write: (line: string) => void;
  #seq = 0;
  readonly #ids: string[] = [];
  readonly #known: Set<string> = new Set();
  readonly #newParents: Map<string, string | null> = new Map();
  readonly #recent = createRecentBranch();

  constructor(survey: Survey, header: string, write: (line: string) => void) {
    this.#survey = survey;
    this.#header = header;
    this.#write = write;
  }

  addHeader(): void {
    this.#write(this.#header);
    this.changes.push({ line: 0, byteOffset: 0, sizeBytes: 0, what: "a header was added" });
  }

  take(line: SurveyedLine): void {
    const { glued, unacknowledgedFrom } = this.#survey;
    if (line.line >= unacknowledgedFrom) return this.#change(line, "the end was never acknowledged and is left out");
    if (line.ownHeader === "damaged") {
      this.#change(line, "the header was written again");
      return this.#write(this.#header);
    }
    const records = glued.get(line.line);
    if (records !== undefined) {
      this.#change(line, `${records.length} records were found in the line`);
      for (const record of records) this.#addMade(this.#linked(record), null);
      return;
    }
    if (isImportedHeader(line)) return this.#add(line.text, line.envelope, line.read.record);
    const isRow = isOwnRow(line.envelope);
    if (line.line > 1 && line.read.record.type === "session" && line.read.unparsed === null && !isRow)
      return this.#change(line, "a header inside the file is left out");
    if (line.read.isHeader && !isRow) {
      if (!line.isClean || isEdited(line)) this.#change(line, "the header was put right");
      if (line.envelope?.seq !== 0) return this.#add(line.text, line.envelope, line.read.record);
      const { crc } = line.envelope;
      return this.#write(
        sealLine(line.text, { ...line.envelope, ...(crc === undefined ? {} : { crc: crc32(line.text) }) }),
      );
    }
    const kept = this.#kept(line);
    if (kept !== null && isEdited(line))
      this.#change(line, "the line does not match its checksum and is taken as it is now");
    if (kept !== null) return this.#add(kept, line.envelope, line.read.record);
    // A line that is not UTF-8 was parsed with its envelope as a field of the record, which must be removed.
    const { _tl: _envelope, ...own } = line.read.record as SessionRecord & { readonly _tl?: unknown };
    const record = this.#linked(line.isClean ? line.read.record : (own as SessionRecord));
    this.#change(
      line,
      line.read.unparsed === null ? "the record was put right" : "the line is no record; its place is kept",
    );
    // The text behind a malformed line belongs to that line, so its envelope is not used.
    this.#addMade(record, line.read.unparsed === null ? line.envelope : null);
  }

  #kept({ text, isClean, read, envelope }: SurveyedLine): string | null {
    if (!isClean || read.unparsed !== null) return null;
    const { record } = read;
    // The record of an encoded line is in its envelope and cannot be checked here.
    if (envelope?.enc !== undefined) return text;
    if (this.#linked(record) !== record) return null;
    return JSON.stringify(parseObject(text)) === JSON.stringify(record) ? text : null;
  }

  #linked(record: SessionRecord): SessionRecord {
    const parentId = this.#parentOf(record);
    const kept = record["firstKeptEntryId"];
    const isDangling =
      record.type === "compaction" && typeof kept === "string" && kept !== record.id && !this.#known.has(kept);
    if (parentId === record.parentId && !isDangling) return record;
    if (!isDangling) return { ...record, parentId };
    // The new reference keeps the part that a context would contain without the repair.
    return { ...record, parentId, firstKeptEntryId: this.#recent.tailStart(parentId) ?? parentId ?? record.id };
  }

  /**
   * Returns the parent of a record. A missing parent is replaced by the record before it. If that one is a descendant,
   * as after a duplicated part of the file, the nearest earlier record that is none is used.
   */
  #parentOf({ id, parentId }: SessionRecord): string | null {
    const { parents, cycles } = this.#survey;
    if (this.#newParents.has(id)) return this.#newParents.get(id) ?? null;
    if (parentId === null || (parents.has(parentId) && !cycles.has(id))) return parentId;
    let at = this.#ids.length - 1;
    while (at >= 0 && parents.rootOf(this.#ids[at] ?? "", cycles) === id) at--;
    const found = this.#ids[at] ?? null;
    parents.attach(id, found);
    cycles.delete(id);
    this.#newParents.set(id, found);
    return found;
  }

  #addMade(record: SessionRecord, envelope: StoreEnvelope | null): void {
    this.#add(serializeRecord(record), envelope, record);
  }

  #add(text: string, envelope: StoreEnvelope | null, record: SessionRecord): void {
    this.#seq++;
    this.#ids.push(record.id);
    this.#known.add(record.id);
    this.#recent.add(record, Buffer.byteLength(text));
    if (envelope === null) return this.#write(text);
    const { source: _source, sourceBase64: _base64, ...rest } = envelope;
    const isUntouched = envelope.enc !== undefined || envelope.crc === crc32(text);
    const members = isUntouched ? envelope : { ...rest, crc: crc32(text) };
    this.#write(sealLine(text, { ...members, seq: this.#seq }));
  }

  #change({ line, byteOffset, sizeBytes, isTerminated }: SurveyedLine, what: string): void {
    this.changes.push({ line, byteOffset, sizeBytes: sizeBytes + (isTerminated ? 1 : 0), what });
  }
}

/**
 * Tests whether a line of this store was edited. A read refuses such a line until the repaired copy replaces the file.
 */
function isEdited({ envelope, text, isIntact }: SurveyedLine): boolean {
  if (!isIntact) return true;
  return envelope !== null && envelope.enc === undefined && envelope.crc !== undefined && envelope.crc !== crc32(text);
}

/** Limits how many times a line's length is scanned, because a crafted line could take forever. */
const maxReadings = 8;

function gluedRecords(line: string): readonly SessionRecord[] | null {
  const records: SessionRecord[] = [];
  let left = line.length * maxReadings;
  for (let from = line.indexOf('{"'); from !== -1 && left > 0;) {
    const end = endOfValue(line, from);
    left -= (end ?? line.length) - from;
    const record = end === null ? null : parseObject(detachEnvelope(line.slice(from, end)).text);
    if (record !== null && isRecord(record)) records.push(record);
    from = line.indexOf('{"', record === null || end === null ? from + 1 : end);
  }
  return records.length === 0 ? null : records;
}

/** Excludes headers, because the next reader would take one for a second header of the file. */
function isRecord(value: Readonly<Record<string, unknown>>): value is SessionRecord {
  return (
    typeof value["type"] === "string" &&
    value["type"] !== "session" &&
    typeof value["id"] === "string" &&
    typeof value["timestamp"] === "string" &&
    (value["parentId"] === null || typeof value["parentId"] === "string")
  );
}
