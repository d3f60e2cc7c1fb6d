import { ThroughlineError, type OpenTurn } from "@throughline/core";
import { isFields } from "@throughline/core/internal";

/**
 * Holds the data that Throughline's JSON Lines carry beside the record, in a reserved last field `_tl`.
 * `docs/formats/records.md` describes it. Members that this version does not know are kept.
 */
export interface LineEnvelope {
  /** States the record's sequence number, or 0 for a Throughline header, which is not a record. */
  readonly seq: number;
  /**
   * States the position of this line in its append, from 1, and the number of lines in the append. Absent for an append
   * of one line.
   */
  readonly batch?: readonly [index: number, count: number];
  /** States the idempotency key of the append. Absent when the append had none. */
  readonly idem?: string;
  /** States the SHA-256 of the append's drafts. Present beside `idem`. */
  readonly digest?: string;
  /** States the CRC-32 of the line without its envelope. */
  readonly crc?: number;
  /** States the store's time at the write, in UTC milliseconds. */
  readonly at?: number;
  /** States the fence of the session's newest turn. */
  readonly fence?: number;
  /** States the open turn after this line. Null when the append ended the turn; absent when it did not change it. */
  readonly turn?: OpenTurn | null;
  /** States the head after this line. Present only when a rewind set it. */
  readonly head?: string | null;
  /** States the first sequence number that a context needs, as the writer computed it. */
  readonly window?: number;
  /** Holds the fields of the session's entry that the append set. */
  readonly entry?: Readonly<Record<string, unknown>>;
  /** Names the fields of the session's entry that the append removed. */
  readonly unset?: readonly string[];
  /** Holds the imported line when this line holds the converted record instead of the original. */
  readonly source?: string;
  /** Holds the imported line in base64 when it is not well-formed UTF-8. */
  readonly sourceBase64?: string;
  /** Holds the encoded payload when the store uses a codec. */
  readonly enc?: string;
  /** States the CRC-32 of the envelope before this member, which is the last. Absent in lines of earlier versions. */
  readonly sum?: number;
}

/** Holds a line without its envelope, and the envelope. */
export interface DetachedLine {
  /** Holds the line exactly as before the envelope was attached. */
  readonly text: string;
  /** Holds the envelope; null when the line has none that `attachEnvelope` wrote. */
  readonly envelope: LineEnvelope | null;
}

const startsAnObject = /^[ \t\r\n]*\{/;
const marker = '"_tl":';
/**
 * Escapes the marker as a key inside an envelope, so that `lastIndexOf` finds only the real marker. The JSON value
 * stays the same.
 */
const escapedMarker = '"\\u005ftl":';

/**
 * Inserts the envelope before the text's last brace. The text itself stays unchanged, including numbers, spaces, a
 * carriage return and a `_tl` of its own.
 * @throws {ThroughlineError} INPUT_INVALID when the text does not end like a JSON object
 */
export function attachEnvelope(text: string, envelope: LineEnvelope): string {
  return attachEnvelopeText(text, envelopeText(envelope));
}

/** Attaches an envelope whose JSON `envelopeText` has built, so that callers can build it once. */
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
 * Removes the envelope. The function is the exact inverse of `attachEnvelope`. A line without an envelope is returned
 * unchanged, and so is a `_tl` that `attachEnvelope` would have written differently, because another program wrote it.
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

/** Returns the JSON of an envelope as a line holds it. */
export function envelopeText(envelope: LineEnvelope): string {
  const plain = plainText(envelope);
  if (plain !== null) return plain;
  const text = JSON.stringify(envelope);
  // Every written line passes here and few lines need escapes, so one test skips the three replacements.
  if (!needsEscapes.test(text)) return text;
  return text.replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029").replaceAll(marker, escapedMarker);
}

/**
 * Most envelopes hold only whole numbers and a batch, which this fast path formats. Null means that another member is
 * present.
 */
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
/** `attachEnvelope` writes digits in exactly this form, so a match needs no second serialization to compare. */
const plainEnvelope = new RegExp(
  `\\{"seq":${count}(?:,"batch":\\[${count},${count}\\])?(?:,"at":${count})?(?:,"crc":${count})?(?:,"sum":${count})?\\}`,
  "y",
);

/**
 * Reads the envelope of most lines without `JSON.parse`. The envelope runs from `from` to the end of the text minus
 * `behind` characters. The envelope has `seq`, and optionally `batch`, `at`, `crc` and `sum`, written as
 * `attachEnvelope` writes them. Null for any other text.
 */
export function readPlainEnvelope(text: string, from: number, behind: number = 0): LineEnvelope | null {
  plainEnvelope.lastIndex = from;
  const found = plainEnvelope.exec(text);
  if (found === null || plainEnvelope.lastIndex !== text.length - behind) return null;
  // The members are read one by one: every line of a transcript passes here, and destructuring costs as much as the
  // pattern.
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

/** Only JSON's white space may follow the brace. */
function closingBrace(text: string): number {
  let at = text.length - 1;
  while (at >= 0 && isJsonSpace(text.charCodeAt(at))) at--;
  return text[at] === "}" ? at : -1;
}

/** An object without members takes no comma before the envelope. */
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
