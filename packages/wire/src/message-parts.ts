/** A store takes records of 16 MiB: a message whose text is larger lies in several. */
const mostBytes = 15 * 1024 * 1024;
/** In characters. As JSON in UTF-8 one takes a few times as many bytes, which still is a record. */
const partLength = 2 * 1024 * 1024;

/** A piece of the text of a message that is too large for a record. */
export interface MessagePart {
  readonly part: number;
  readonly of: number;
  readonly text: string;
}

/** The text of a large message in parts; null for one that a record can hold. */
export function partsOf(text: string): readonly MessagePart[] | null {
  if (text.length * 3 <= mostBytes || Buffer.byteLength(text) <= mostBytes) return null;
  const starts = Array.from({ length: Math.ceil(text.length / partLength) }, (_, index) => index * partLength);
  return starts.map((from, index) => ({
    part: index + 1,
    of: starts.length,
    // A character of two halves must not be cut: alone a half is no text in UTF-8.
    text: text.slice(wholeAt(text, from), wholeAt(text, from + partLength)),
  }));
}

/** The next place in a text that is not in the middle of a character. */
export function wholeAt(text: string, at: number): number {
  const code = at < text.length ? text.charCodeAt(at) : 0;
  return code >= 0xdc00 && code <= 0xdfff ? at + 1 : at;
}

/** The text that parts hold together; null where records hold a message, and where a part is missing or redacted. */
export function textOfParts(contents: readonly unknown[]): string | null {
  const parts = contents.filter(isPart);
  const [first] = parts;
  if (first === undefined || parts.length !== contents.length || parts.length !== first.of) return null;
  return parts.map(({ text }) => text).join("");
}

export function isPart(content: unknown): content is MessagePart {
  if (typeof content !== "object" || content === null) return false;
  const { part, of, text } = content as Partial<Record<keyof MessagePart, unknown>>;
  return typeof part === "number" && typeof of === "number" && typeof text === "string";
}

/** Marks of a cache move from call to call, in a large message too. */
export function withoutMarks(text: string): string {
  return text.replaceAll(/,"cache_control":\{[^{}]{0,200}\}/g, "");
}
