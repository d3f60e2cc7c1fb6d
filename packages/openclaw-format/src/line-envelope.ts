import { ThroughlineError, type OpenTurn } from "@throughline/core";
import { isFields } from "@throughline/core/internal";

/**
 * What Throughline's JSON Lines carry beside the record, in one reserved last field `_tl`; described in
 * `docs/formats/records.md`. Members that this version does not know are kept.
 */
export interface LineEnvelope {
  /** 0 for a header of ours, which is no record. */
  readonly seq: number;
  /** Which line of an append this is, from 1, and how many it has. Absent: an append of one. */
  readonly batch?: readonly [index: number, count: number];
  /** The idempotency key of the append. Absent: it had none. */
  readonly idem?: string;
  /** The SHA-256 of the drafts of the append, beside `idem`. */
  readonly digest?: string;
  /** CRC-32 of the line without its envelope. */
  readonly crc?: number;
  /** The store's clock when the line was written, UTC milliseconds. */
  readonly at?: number;
  /** The fence of the session's newest turn. */
  readonly fence?: number;
  /** The open turn after this line; null when the append ended it, absent when it changed nothing. */
  readonly turn?: OpenTurn | null;
  /** Present only when a rewind set it. */
  readonly head?: string | null;
  /** The first sequence number that a context needs, as the writer stated it. */
  readonly window?: number;
  /** Fields of the session's entry that the append set. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** Fields of the session's entry that the append removed. */
  readonly unset?: readonly string[];
  /** The line as it was imported, when the line it is in is the record it stands for. */
  readonly source?: string;
  /** The same for a line that is not well-formed UTF-8. */
  readonly sourceBase64?: string;
  /** The coded payload, under a codec. */
  readonly enc?: string;
  /** CRC-32 of the envelope before this member, which is its last. Absent in lines of earlier versions. */
  readonly sum?: number;
}

/** A line without its envelope, and the envelope. */
export interface DetachedLine {
  /** The line exactly as it was before the envelope was attached. */
  readonly text: string;
  /** The envelope; null when the line has none that `attachEnvelope` wrote. */
  readonly envelope: LineEnvelope | null;
}

const startsAnObject = /^[ \t\r\n]*\{/;
const marker = '"_tl":';
/** The marker as a key inside an envelope: the same JSON, but no marker. */
const escapedMarker = '"\\u005ftl":';

/**
 * Puts the envelope in front of the text's last brace. Nothing of the text changes: numbers, spaces, a carriage return,
 * a `_tl` of its own.
 * @throws {ThroughlineError} INPUT_INVALID when the text does not end like a JSON object
 */
export function attachEnvelope(text: string, envelope: LineEnvelope): string {
  return attachEnvelopeText(text, envelopeText(envelope));
}

/** Does what `attachEnvelope` does, with the JSON of the envelope as `envelopeText` gives it. */
export function attachEnvelopeText(text: string, envelope: string): string {
  const close = closingBrace(text);
  if (close === -1 || !startsAnObject.test(text)) {
    throw new ThroughlineError("INPUT_INVALID", "Only the text of a JSON object can carry an envelope.", {
      outcome: "not-applied",
    });
  }
  const before = text.slice(0, close);
  return `${before}${separator(before)}${marker}${envelope}${text.slice(close)}`;
}

/**
 * Takes the envelope off again: the exact inverse of `attachEnvelope`. A line that holds no envelope, or a `_tl` that
 * `attachEnvelope` would have written otherwise, is another program's line and comes back as it is.
 */
export function detachEnvelope(line: string): DetachedLine {
  const none: DetachedLine = { text: line, envelope: null };
  const at = line.lastIndexOf(marker);
  if (at === -1 || !startsAnObject.test(line)) return none;
  const close = closingBrace(line);
  const json = line.slice(at + marker.length, Math.max(close, 0));
  if (!json.startsWith('{"') || !json.endsWith("}")) return none;
  const envelope = parseEnvelope(json);
  if (envelope === null) return none;
  const hasComma = line[at - 1] === ",";
  const before = line.slice(0, hasComma ? at - 1 : at);
  if (separator(before) !== (hasComma ? "," : "")) return none;
  return { text: before + line.slice(close), envelope };
}

const needsEscapes = new RegExp(`[\\u2028\\u2029]|${marker}`);

/** The JSON of an envelope as it is written into a line. */
export function envelopeText(envelope: LineEnvelope): string {
  const plain = plainText(envelope);
  if (plain !== null) return plain;
  const text = JSON.stringify(envelope);
  // Every line that is written comes by here, and hardly one holds any of it.
  if (!needsEscapes.test(text)) return text;
  return text.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029").replaceAll(marker, escapedMarker);
}

/** The JSON of an envelope of whole numbers and a batch only, as most are; null for any other. */
function plainText(envelope: LineEnvelope): string | null {
  let text = "";
  for (const member of Object.keys(envelope)) {
    const value = envelope[member as keyof LineEnvelope];
    if (isCount(value) && counts.has(member)) text += `,"${member}":${value}`;
    else if (member === "batch" && isPair(value)) text += `,"batch":[${value[0]},${value[1]}]`;
    else return null;
  }
  return `{${text.slice(1)}}`;
}

const counts: ReadonlySet<string> = new Set(["seq", "at", "crc", "fence", "window", "sum"]);

function isPair(value: unknown): value is readonly [number, number] {
  return Array.isArray(value) && value.length === 2 && isCount(value[0]) && isCount(value[1]);
}

const count = "(0|[1-9]\\d{0,14})";
/** Digits like these are what `attachEnvelope` writes, and need not be written again to be compared. */
const plainEnvelope = new RegExp(
  `\\{"seq":${count}(?:,"batch":\\[${count},${count}\\])?(?:,"at":${count})?(?:,"crc":${count})?(?:,"sum":${count})?\\}`,
  "y",
);

/**
 * The envelope of most lines, if the text from one place to its last but `behind` characters is one. It has `seq`, and
 * optionally `batch`, `at`, `crc` and `sum`, written as `attachEnvelope` writes them. Null for any other.
 */
export function readPlainEnvelope(text: string, from: number, behind: number = 0): LineEnvelope | null {
  plainEnvelope.lastIndex = from;
  const found = plainEnvelope.exec(text);
  if (found === null || plainEnvelope.lastIndex !== text.length - behind) return null;
  // Member by member: every line of a transcript comes by here, and taking a match apart costs as much as the pattern.
  const envelope: { seq: number; batch?: readonly [number, number]; at?: number; crc?: number; sum?: number } = {
    seq: Number(found[1]),
  };
  if (found[2] !== undefined) envelope.batch = [Number(found[2]), Number(found[3])];
  if (found[4] !== undefined) envelope.at = Number(found[4]);
  if (found[5] !== undefined) envelope.crc = Number(found[5]);
  if (found[6] !== undefined) envelope.sum = Number(found[6]);
  return envelope;
}

function parseEnvelope(json: string): LineEnvelope | null {
  const plain = readPlainEnvelope(json, 0);
  if (plain !== null) return plain;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return null;
  }
  return isLineEnvelope(value) && envelopeText(value) === json ? value : null;
}

/** The index of the brace that ends the text, -1 when something else does. Only JSON's own white space may follow. */
function closingBrace(text: string): number {
  let at = text.length - 1;
  while (at >= 0 && isJsonSpace(text.charCodeAt(at))) at--;
  return text[at] === "}" ? at : -1;
}

/** An object without members takes no comma. */
function separator(before: string): string {
  let at = before.length - 1;
  while (at >= 0 && isJsonSpace(before.charCodeAt(at))) at--;
  if (before[at] !== "{") return ",";
  at--;
  while (at >= 0 && isJsonSpace(before.charCodeAt(at))) at--;
  return at === -1 ? "" : ",";
}

function isJsonSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;
}

const checks: Readonly<Record<string, (value: unknown) => boolean>> = {
  seq: isCount,
  batch: (value) => Array.isArray(value) && value.length === 2 && value.every(isCount),
  idem: isText,
  digest: isText,
  crc: isCount,
  at: (value) => typeof value === "number",
  fence: isCount,
  turn: (value) => value === null || isFields(value),
  head: (value) => value === null || isText(value),
  window: isCount,
  entry: isFields,
  unset: (value) => Array.isArray(value) && value.every(isText),
  source: isText,
  sourceBase64: isText,
  enc: isText,
  sum: isCount,
};

function isLineEnvelope(value: unknown): value is LineEnvelope {
  if (!isFields(value) || !Object.hasOwn(value, "seq")) return false;
  for (const member of Object.keys(value)) {
    if (Object.hasOwn(checks, member) && checks[member]?.(value[member]) === false) return false;
  }
  return true;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
