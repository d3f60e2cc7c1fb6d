import type { FindingCode, RecordSource } from "@throughline/core/internal";
import { isNestedDeeper, maxNesting, isFields, type Fields } from "@throughline/core/internal";
import { readableLine } from "./decode-line.ts";

/** Names the reason why a line gives no record. */
export type UnparsedReason =
  | "blank"
  | "malformed"
  | "torn"
  | "nul"
  | "too-long"
  | "too-deep"
  | "not-an-object"
  | "no-type";

interface LineRemark {
  readonly code: FindingCode;
  readonly message: string;
  readonly repaired: boolean;
}

/** Holds the result of parsing a line as JSON. */
export interface ParsedLine {
  readonly value: Fields | null;
  /** Present exactly when `value` is null. */
  readonly reason: UnparsedReason | null;
  /** True when the line's bytes are the JSON of `value` without any repair. */
  readonly isExact: boolean;
  readonly remarks: readonly LineRemark[];
}

export interface ParseLineLimits {
  readonly maxLineBytes: number;
  readonly maxDepth: number;
}

/**
 * Stores refuse a record that is nested deeper than this, because it could exhaust the stack of a program that walks
 * it.
 */
export const maxRecordDepth: number = maxNesting;

const nul = "\0";

/** Parses a line as a JSON object. Never throws: `reason` states why a line cannot be read. */
export function parseLine(source: RecordSource, sizeBytes: number, limits: ParseLineLimits): ParsedLine {
  if (sizeBytes > limits.maxLineBytes) {
    const message = `The line has ${sizeBytes} bytes; lines of at most ${limits.maxLineBytes} are read.`;
    return unparsed("too-long", { code: "LINE_TOO_LONG", message, repaired: false });
  }
  const { text, hasByteOrderMark, hasReplacements } = readableLine(source);
  const remarks: LineRemark[] = [];
  if (hasByteOrderMark)
    remarks.push({ code: "BYTE_ORDER_MARK", message: "The line begins with a byte order mark.", repaired: true });
  if (isBlank(text)) return { value: null, reason: "blank", isExact: false, remarks };
  const parsed = parseJson(text);
  if (parsed === undefined) return readAround(text, remarks, limits.maxDepth);
  if (hasReplacements) {
    const message = "Bytes that are not UTF-8 are read as replacement characters; the line itself is kept.";
    remarks.push({ code: "LINE_MALFORMED", message, repaired: true });
  }
  return checkValue(parsed.value, typeof source === "string", remarks, limits.maxDepth);
}

/**
 * A crash can leave a run of NUL characters where bytes never reached the disk. A line that was appended after them is
 * still whole.
 */
function readAround(text: string, remarks: readonly LineRemark[], maxDepth: number): ParsedLine {
  const rest = trimNuls(text);
  if (rest === "") {
    return unparsed(
      "nul",
      { code: "LINE_MALFORMED", message: `The line is ${text.length} NUL characters.`, repaired: false },
      remarks,
    );
  }
  const parsed = rest.length === text.length ? undefined : parseJson(rest);
  if (parsed === undefined) {
    return unparsed(
      "malformed",
      { code: "LINE_MALFORMED", message: "The line is not JSON.", repaired: false },
      remarks,
    );
  }
  const message = `${text.length - rest.length} NUL characters beside the record are skipped.`;
  return checkValue(parsed.value, false, [...remarks, { code: "LINE_MALFORMED", message, repaired: true }], maxDepth);
}

function checkValue(value: unknown, isExact: boolean, remarks: readonly LineRemark[], maxDepth: number): ParsedLine {
  if (!isFields(value)) {
    const message = `The line is JSON, but ${Array.isArray(value) ? "a list" : `a ${value === null ? "null" : typeof value}`} and not a record.`;
    return unparsed("not-an-object", { code: "LINE_MALFORMED", message, repaired: false }, remarks);
  }
  if (isNestedDeeper(value, maxDepth)) {
    const message = `The record is nested more than ${maxDepth} levels deep.`;
    return unparsed("too-deep", { code: "LINE_MALFORMED", message, repaired: false }, remarks);
  }
  return { value, reason: null, isExact, remarks };
}

function unparsed(reason: UnparsedReason, remark: LineRemark, earlier: readonly LineRemark[] = []): ParsedLine {
  return { value: null, reason, isExact: false, remarks: [...earlier, remark] };
}

function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function isBlank(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x09 && code !== 0x0d) return false;
  }
  return true;
}

function trimNuls(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text[start] === nul) start++;
  while (end > start && text[end - 1] === nul) end--;
  return text.slice(start, end);
}
