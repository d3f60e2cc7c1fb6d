import { assertDraftIsMeant } from "./check-draft.ts";
import { isColumnText } from "./column-text.ts";
import { isSideRecord } from "./is-side-record.ts";
import { isJsonTooDeep, isNestedDeeper, maxNesting } from "./nesting.ts";
import type { Clock, RecordIds } from "./ports.ts";
import type { SessionRecord } from "./record.ts";
import { isSourcedDraft, type AppendDraft, type RecordDraft, type RecordSource } from "./record-draft.ts";
import { findOriginProblem } from "./record-origin.ts";
import { refused } from "./refused.ts";
import { quote } from "./session-id.ts";
import type { StoreLimits } from "./store-capabilities.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** Holds a draft with everything decided except its position in the session. */
export interface PreparedRecord {
  /** States the record's id, the caller's or a new id. */
  readonly id: string;
  /** States whether the caller chose the id, which may then be in use already. */
  readonly isIdGiven: boolean;
  /** States the parent. Undefined stands for the head, which is known only under the store's exclusion. */
  readonly parentId: string | null | undefined;
  /** States the record's type. */
  readonly type: string;
  /** States whether the record is a side record, which does not move the head. */
  readonly side: boolean;
  /** States the record's time as text. */
  readonly timestamp: string;
  /** States the same time in milliseconds since 1970; null when the text states none. */
  readonly tsMs: number | null;
  /** Holds the record's other fields, in the caller's order. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Holds the other fields as JSON, serialized before any lock is acquired; null when the source is the line. */
  readonly fieldsText: string | null;
  /** Holds the line that the record came from; null for a new record. */
  readonly source: RecordSource | null;
  /** States whether the source's own JSON is the record, so that keeping the source is enough. */
  readonly isSourceCanonical: boolean;
}

/** Holds a record in its final position. */
export interface LinkedRecord {
  /** Holds the record with its parent. */
  readonly record: SessionRecord;
  /** Holds the record as one line of JSON. */
  readonly text: string;
  /** States whether the record is a side record. */
  readonly side: boolean;
  /** States the record's time in milliseconds since 1970; null when the record states none. */
  readonly tsMs: number | null;
  /** Holds the line that the record came from; null for a new record. */
  readonly source: RecordSource | null;
  /** States whether the source's own JSON is the record. */
  readonly isSourceCanonical: boolean;
  /** States the size of the line when it is known already, because counting it walks over the whole text. */
  readonly bytes?: number;
}

export interface PrepareOptions {
  readonly ids: RecordIds;
  readonly clock: Clock;
  readonly limits: StoreLimits;
}

/**
 * Checks a batch and decides ids and times, before any lock is acquired. An error names the index of the wrong draft.
 * @throws {ThroughlineError} INPUT_INVALID, RECORD_INVALID, RECORD_ID_TAKEN (twice in the batch), BATCH_TOO_LARGE
 */
export function prepareDrafts(drafts: readonly AppendDraft[], options: PrepareOptions): readonly PreparedRecord[] {
  if (!Array.isArray(drafts))
    throw refused("INPUT_INVALID", `An append takes an array of drafts, not ${quote(drafts)}.`);
  if (drafts.length > options.limits.batchRecords) {
    throw new ThroughlineError(
      "BATCH_TOO_LARGE",
      `The append holds ${drafts.length} records; the store takes ${options.limits.batchRecords} at once.`,
      { outcome: "not-applied" },
    );
  }
  const givenIds = new Set<string>();
  return drafts.map((draft, index) => {
    if (typeof draft !== "object" || draft === null) throw invalid(index, "it is not an object");
    const prepared = isSourcedDraft(draft)
      ? prepareSourced(draft.source, draft.record, index)
      : prepareDraft(draft, index, options);
    if (prepared.isIdGiven && givenIds.has(prepared.id)) {
      throw new ThroughlineError("RECORD_ID_TAKEN", `Draft ${index} repeats the id ${quote(prepared.id)}.`, {
        outcome: "not-applied",
        details: { index, id: prepared.id },
      });
    }
    if (prepared.isIdGiven) givenIds.add(prepared.id);
    return prepared;
  });
}

/** Gives each record its parent, starting at the head, and the line that will be kept. */
export function linkRecords(prepared: readonly PreparedRecord[], headId: string | null): readonly LinkedRecord[] {
  let head = headId;
  return prepared.map((item) => {
    const parentId = item.parentId === undefined ? head : item.parentId;
    const record: SessionRecord = { type: item.type, id: item.id, parentId, timestamp: item.timestamp, ...item.fields };
    if (!item.side) head = item.id;
    const { side, tsMs, source, isSourceCanonical } = item;
    const text = lineText(item, parentId);
    return { record, text, side, tsMs, source, isSourceCanonical, bytes: lineBytes({ source, text }) };
  });
}

/**
 * Returns the line of a record: the four fields that every record has, then its other fields. The line is joined from
 * texts, so that only the parent has to wait for the lock. A field named like a number then cannot come before `type`.
 */
function lineText(item: PreparedRecord, parentId: string | null): string {
  if (item.fieldsText === null) return item.source as string;
  const { type, id, timestamp, fieldsText } = item;
  const parent = parentId === null ? "null" : jsonText(parentId);
  const base = `{"type":${jsonText(type)},"id":${jsonText(id)},"parentId":${parent},"timestamp":${jsonText(timestamp)}`;
  return fieldsText === "{}" ? `${base}}` : `${base},${fieldsText.slice(1)}`;
}

const needsNoEscape = /^[ !#-[\]-~]*$/;

/** The first fields of a record hardly ever need an escape, so most texts only get quotes. */
function jsonText(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : serializeJson(text);
}

/** Returns the size of a record's line without the line feed: the imported line, or the record as JSON. */
export function lineBytes({ source, text, bytes }: Pick<LinkedRecord, "source" | "text" | "bytes">): number {
  if (bytes !== undefined) return bytes;
  return source instanceof Uint8Array ? source.byteLength : Buffer.byteLength(source ?? text);
}

export function headAfter(linked: readonly LinkedRecord[], headId: string | null): string | null {
  return linked.findLast((item) => !item.side)?.record.id ?? headId;
}

/**
 * Returns the text by which an idempotency key compares drafts: the drafts as given, before ids and times are filled
 * in. Stores keep a hash of the text.
 * @throws {ThroughlineError} RECORD_INVALID for what JSON cannot hold
 */
export function draftsFingerprint(drafts: readonly AppendDraft[]): string {
  const texts = drafts.map((draft, index) => {
    const value = isSourcedDraft(draft)
      ? {
          source: typeof draft.source === "string" ? draft.source : Array.from(draft.source),
          record: draft.record ?? null,
        }
      : draft;
    return jsonOf(value, index, (given) => JSON.stringify(given)) ?? "null";
  });
  return `[${texts.join(",")}]`;
}

/**
 * Serializes a record to JSON on one line. U+2028 and U+2029 are escaped, which does not change the value. Readers that
 * split lines there, such as Node's readline, then do not tear the record apart.
 * @throws {ThroughlineError} RECORD_INVALID for what JSON cannot hold
 */
export function serializeRecord(record: unknown, index = 0): string {
  return jsonOf(record, index, serializeJson);
}

function jsonOf(value: unknown, index: number, write: (value: unknown) => string): string {
  try {
    return write(value);
  } catch (cause) {
    throw invalid(index, `it is not JSON: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
}

/**
 * These fields come first in the line or belong to the store. A `toJSON` that sets them again would replace their
 * values.
 */
const settledFields = ["type", "id", "parentId", "timestamp", "seq", "_tl"] as const;

function assertOthersOnly(made: object, index: number): void {
  const settled = settledFields.find((field) => Object.hasOwn(made, field));
  if (settled !== undefined) throw invalid(index, `its toJSON gives it another ${settled}`);
}

/** A draft's own `toJSON` may return any value, and only an object can be joined to the four fields. */
function fieldsTextOf(fields: Readonly<Record<string, unknown>>, index: number): string {
  const text: string | undefined = serializeRecord(fields, index);
  if (text?.startsWith("{") !== true) throw invalid(index, "its JSON is not an object");
  if (typeof fields["toJSON"] === "function") assertOthersOnly(JSON.parse(text) as object, index);
  if (isJsonTooDeep(fields, text)) throw tooDeep(index);
  return text;
}

function serializeJson(value: unknown): string {
  const text = JSON.stringify(value);
  return /[\u2028\u2029]/.test(text) ? text.replace(/\u2028/g, "\\u2028").replace(/\u2029/g, "\\u2029") : text;
}

function prepareDraft(draft: RecordDraft, index: number, options: PrepareOptions): PreparedRecord {
  if (Array.isArray(draft)) throw invalid(index, "it is not an object");
  const { type, id, parentId, timestamp, ...fields } = draft;
  if ("seq" in draft) throw invalid(index, "seq is assigned by the store");
  if ("_tl" in draft) throw invalid(index, "the field _tl is reserved");
  assertBase(draft, index);
  const atMs = timestamp === undefined ? options.clock.nowMs() : Date.parse(timestamp);
  if (!Number.isFinite(atMs)) throw invalid(index, `timestamp ${quote(timestamp)} is not an ISO time`);
  assertDraftIsMeant(draft, index);
  const origin = findOriginProblem(draft);
  if (origin !== null) throw invalid(index, origin);
  return {
    id: id ?? options.ids.next(),
    isIdGiven: id !== undefined,
    parentId,
    type,
    side: isSideRecord(draft),
    timestamp: timestamp ?? isoTime(atMs),
    tsMs: atMs,
    fields,
    fieldsText: fieldsTextOf(fields, index),
    source: null,
    isSourceCanonical: false,
  };
}

let lastIso = { atMs: Number.NaN, text: "" };

/** Most records of a turn share one millisecond, and formatting the time is the slowest step for a short record. */
function isoTime(atMs: number): string {
  if (lastIso.atMs !== atMs) lastIso = { atMs, text: new Date(atMs).toISOString() };
  return lastIso.text;
}

function prepareSourced(source: RecordSource, given: RecordDraft | undefined, index: number): PreparedRecord {
  if (typeof source !== "string" && !(source instanceof Uint8Array))
    throw invalid(index, "its source is neither text nor bytes");
  // A line feed would make two lines of one record. Half a character would change on its way through UTF-8.
  if (typeof source === "string" ? source.includes("\n") : source.includes(0x0a))
    throw invalid(index, "its source holds a line feed");
  if (typeof source === "string" && !source.isWellFormed()) throw invalid(index, "its source holds half a character");
  const draft = given ?? parseSource(source, index);
  if (given === undefined && isNestedDeeper(draft, maxNesting)) throw tooDeep(index);
  assertBase(draft, index);
  const { type, id, parentId, timestamp, ...fields } = draft;
  if (id === undefined || parentId === undefined || typeof timestamp !== "string") {
    throw invalid(index, "a record with a source must state its id, parentId and timestamp");
  }
  const tsMs = Date.parse(timestamp);
  return {
    id,
    isIdGiven: true,
    parentId,
    type,
    side: isSideRecord(draft),
    timestamp,
    tsMs: Number.isFinite(tsMs) ? tsMs : null,
    fields,
    fieldsText: given === undefined ? null : fieldsTextOf(fields, index),
    source,
    isSourceCanonical: given === undefined,
  };
}

function parseSource(source: RecordSource, index: number): RecordDraft {
  if (typeof source !== "string")
    throw invalid(index, "a source that is not text needs a record that says what it means");
  try {
    const value: unknown = JSON.parse(source);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as RecordDraft;
  } catch (cause) {
    throw invalid(index, "its source is not JSON and no record says what it means", cause);
  }
  throw invalid(index, "its source is not a JSON object");
}

function assertBase(draft: RecordDraft, index: number): void {
  const { type, id, parentId, timestamp } = draft;
  if (!isColumnText(type, 128)) throw invalid(index, "type must be a short text");
  if (id !== undefined && !isColumnText(id, 256))
    throw invalid(index, "id must be text of 1 to 256 characters without control characters");
  if (parentId !== undefined && parentId !== null && typeof parentId !== "string") {
    throw invalid(index, "parentId must be text or null");
  }
  if (parentId !== undefined && parentId !== null && parentId === id)
    throw invalid(index, "parentId is the record's own id");
  if (timestamp !== undefined && typeof timestamp !== "string") throw invalid(index, "timestamp must be an ISO time");
}

/** Every reader must be able to read a stored record, so a deeper record is refused. */
function tooDeep(index: number): ThroughlineError {
  return invalid(index, `it is nested more than ${maxNesting} levels deep`);
}

function invalid(index: number, why: string, cause?: unknown): ThroughlineError {
  return new ThroughlineError("RECORD_INVALID", `Draft ${index} is not a valid record: ${why}.`, {
    outcome: "not-applied",
    details: { index },
    cause,
  });
}
