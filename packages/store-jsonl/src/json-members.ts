import { maxNesting } from "@throughline/core/internal";

const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d] as const;
const [quoteMark, backslash, colon, comma] = [0x22, 0x5c, 0x3a, 0x2c] as const;

/** Keeps a value as text, because it is nested so deeply that recursion could overflow the stack. */
export class DeepJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Yields the members of a JSON object one at a time, so that a large object need not be parsed at once. A key that
 * occurs twice is yielded twice, and the later one counts. A value that is nested too deeply is yielded as `DeepJson`.
 * @throws {SyntaxError} where the text is not one JSON object, perhaps after some members of it
 */
export function* jsonMembers(bytes: Uint8Array): Generator<readonly [key: string, value: unknown]> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = expect(bytes, 0, openBrace);
  if (bytes[at] === closeBrace) return assertEnd(bytes, at + 1);
  for (;;) {
    const keyEnd = endOfText(bytes, at);
    const key = JSON.parse(text.toString("utf8", at, keyEnd)) as unknown;
    if (typeof key !== "string") throw new SyntaxError(`no key at byte ${at}`);
    const start = expect(bytes, skipSpace(bytes, keyEnd), colon);
    const { end, depth } = endOfValue(bytes, start);
    const value = text.toString("utf8", start, end);
    const parsed = JSON.parse(value) as unknown;
    yield [key, depth > maxNesting ? new DeepJson(value) : parsed];
    at = skipSpace(bytes, end);
    if (bytes[at] === closeBrace) return assertEnd(bytes, at + 1);
    at = expect(bytes, at, comma);
  }
}

function expect(bytes: Uint8Array, from: number, byte: number): number {
  const at = skipSpace(bytes, from);
  if (bytes[at] !== byte) throw new SyntaxError(`${String.fromCharCode(byte)} expected at byte ${at}`);
  return skipSpace(bytes, at + 1);
}

function assertEnd(bytes: Uint8Array, from: number): void {
  const at = skipSpace(bytes, from);
  if (at < bytes.length) throw new SyntaxError(`something follows at byte ${at}`);
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}

function endOfText(bytes: Uint8Array, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    if (bytes[at] === backslash) at++;
    else if (bytes[at] === quoteMark) return at + 1;
  }
  return bytes.length;
}

function endOfValue(bytes: Uint8Array, from: number): { readonly end: number; readonly depth: number } {
  const first = bytes[from];
  if (first === quoteMark) return { end: endOfText(bytes, from), depth: 0 };
  if (first !== openBrace && first !== openBracket) {
    let at = from;
    while (at < bytes.length && bytes[at] !== comma && bytes[at] !== closeBrace) at++;
    return { end: at, depth: 0 };
  }
  let [open, depth] = [0, 0];
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quoteMark) at = endOfText(bytes, at) - 1;
    else if (byte === openBrace || byte === openBracket) depth = Math.max(depth, ++open);
    else if ((byte === closeBrace || byte === closeBracket) && --open === 0) return { end: at + 1, depth };
  }
  return { end: bytes.length, depth };
}

export function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
