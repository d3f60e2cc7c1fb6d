import { causeText } from "./cause-text.ts";
import { isColumnText } from "./column-text.ts";
import { findRecordProblem } from "./find-record-problem.ts";
import { isSideRecord } from "./is-side-record.ts";
import { nearestName } from "./nearest-name.ts";
import { isJsonTooDeep, isNestedDeeper, maxNesting } from "./nesting.ts";
import type { Clock, RecordIds } from "./ports.ts";
import type { SessionRecord } from "./record.ts";
import { isSourcedDraft, type AppendDraft, type RecordDraft, type RecordSource } from "./record-draft.ts";
import { findOriginProblem } from "./record-origin.ts";
import { refused } from "./refused.ts";
import { quote } from "./session-id.ts";
import type { StoreLimits } from "./store-capabilities.ts";
import { ThroughlineError } from "./throughline-error.ts";
import { statedFingerprint } from "./stated-fingerprint.ts";

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
  const prepared: PreparedRecord[] = [];
  let givenIds: Set<string> | null = null;
  for (let index = 0; index < drafts.length; index++) {
    const draft = drafts[index] as AppendDraft;
    if (typeof draft !== "object" || draft === null) throw invalid(index, "it is not an object");
    const item = isSourcedDraft(draft)
      ? prepareSourced(draft.source, draft.record, index)
      : prepareDraft(draft, index, options);
    prepared.push(item);
    if (!item.isIdGiven) continue;
    givenIds ??= new Set();
    if (givenIds.has(item.id)) {
      throw new ThroughlineError("RECORD_ID_TAKEN", `Draft ${index} repeats the id ${quote(item.id)}.`, {
        outcome: "not-applied",
        details: { index, id: item.id },
      });
    }
    givenIds.add(item.id);
  }
  return prepared;
}

/** Gives each record its parent, starting at the head, and the line that will be kept. */
export function linkRecords(prepared: readonly PreparedRecord[], headId: string | null): readonly LinkedRecord[] {
  const linked: LinkedRecord[] = [];
  let head = headId;
  for (const item of prepared) {
    const { type, id, timestamp, side, tsMs, source, isSourceCanonical } = item;
    const parentId = item.parentId === undefined ? head : item.parentId;
    const record: SessionRecord = { type, id, parentId, timestamp, ...item.fields };
    const text = lineText(item, parentId);
    linked.push({ record, text, side, tsMs, source, isSourceCanonical, bytes: lineBytes({ source, text }) });
    if (!side) head = id;
  }
  return linked;
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
  for (let index = linked.length - 1; index >= 0; index--) {
    const { side, record } = linked[index] as LinkedRecord;
    if (!side) return record.id;
  }
  return headId;
}

/**
 * Returns the text by which an idempotency key compares drafts: what was stated, else the drafts as given, before ids
 * and times are filled in. Stores keep a hash of the text.
 * @throws {ThroughlineError} RECORD_INVALID for what JSON cannot hold
 */
export function draftsFingerprint(drafts: readonly AppendDraft[]): string {
  const text = statedFingerprint(drafts);
  if (text !== undefined) return text;
  const texts = drafts.map((draft, index) => {
    const value = isSourcedDraft(draft)
      ? {
          source: typeof draft.source === "string" ? draft.source : Array.from(draft.source),
          record: draft.record ?? null,
        }
      : draft;
    try {
      return JSON.stringify(value) ?? "null";
    } catch (cause) {
      throw notJson(index, cause);
    }
  });
  return `[${texts.join(",")}]`;
}

/**
 * Serializes a record to JSON on one line. U+2028 and U+2029 are escaped, which does not change the value. Readers that
 * split lines there, such as Node's readline, then do not tear the record apart.
 * @throws {ThroughlineError} RECORD_INVALID for what JSON cannot hold
 */
export function serializeRecord(record: unknown, index = 0): string {
  try {
    return serializeJson(record);
  } catch (cause) {
    throw notJson(index, cause);
  }
}

function notJson(index: number, cause: unknown): ThroughlineError {
  return invalid(index, `it is not JSON: ${causeText(cause)}`, cause);
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

/**
 * A misspelling of these record types is refused. The short types (`leaf`, `label`, `usage`, `reset`) are left out,
 * because type names of other programs, such as `preset`, are as similar to them.
 */
const guardedTypes: readonly string[] = [
  "message",
  "compaction",
  "branch_summary",
  "custom",
  "custom_message",
  "model_change",
  "thinking_level_change",
  "session_info",
  "context_edit",
  "checkpoint",
];

/**
 * Refuses a new record that no context would show: a message without usable content, or a type that misspells a known
 * type. Other types pass, and so does every line that came from a file.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function assertDraftIsMeant(draft: RecordDraft, index: number): void {
  if (draft.type === "message") return assertMessage(draft, index);
  const meant = misspelt(draft.type);
  if (meant === null) return;
  throw wrong(
    index,
    "type",
    `its type ${quote(draft.type)} is one letter away from ${quote(meant)}`,
    `Use the type ${quote(meant)}, or a name that is less like it.`,
    meant,
  );
}

/** Returns the known type that is one letter away from an unknown type; null for a known type and for other names. */
export function misspelt(type: string): string | null {
  return guardedTypes.includes(type) ? null : nearestName(type, guardedTypes, { maxEdits: 1, exactCase: true });
}

function assertMessage(draft: RecordDraft, index: number): void {
  const { message } = draft;
  const problem = findRecordProblem({ type: "message", id: "", parentId: null, timestamp: "", message });
  if (problem === null || isWithoutContent(message)) return;
  const near = nearestField(draft, problem.path);
  const instead = near === null ? "" : `; it has ${quote(near)} instead`;
  const remedy = `Give the record a usable ${quote(problem.path)}. docs/formats/records.md describes it.`;
  throw wrong(index, problem.path, `${problem.path} ${problem.message}${instead}`, remedy, lastName(problem.path));
}

/** Other programs write an assistant's message with `content: null` when the message is empty. */
function isWithoutContent(message: unknown): boolean {
  if (typeof message !== "object" || message === null) return false;
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown };
  return role === "assistant" && content === null;
}

/** The missing field may be misspelled, so a field with a similar name is searched in the same object. */
function nearestField(draft: RecordDraft, path: string): string | null {
  const names = path.split(".");
  let holder: unknown = draft;
  for (const name of names.slice(0, -1)) holder = (holder as Readonly<Record<string, unknown>>)[name];
  const wanted = lastName(path);
  if (typeof holder !== "object" || holder === null || Object.hasOwn(holder, wanted)) return null;
  const others = Object.keys(holder).filter((name) => name.length <= 64);
  return nearestName(wanted, others, { maxEdits: 1 });
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

function wrong(index: number, path: string, why: string, remedy: string, nearest: string): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", `Draft ${index} was not appended: ${why}.`, {
    outcome: "not-applied",
    details: { index, path, nearest },
    remedy,
  });
}
