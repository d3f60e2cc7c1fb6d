/** A store accepts records up to 16 MiB, so a longer message is split into several records. */
const mostBytes = 15 * 1024 * 1024;
/** Counts characters. In UTF-8 JSON a part is a few times larger and still fits into a record. */
const partLength = 2 * 1024 * 1024;

/** Holds a piece of a message that is too large for one record. */
export interface MessagePart {
  readonly part: number;
  readonly of: number;
  readonly text: string;
}

/** Splits the text of a large message. Null when one record can hold the message. */
export function partsOf(text: string): readonly MessagePart[] | null {
  if (text.length * 3 <= mostBytes || Buffer.byteLength(text) <= mostBytes) return null;
  const starts = Array.from({ length: Math.ceil(text.length / partLength) }, (_, index) => index * partLength);
  return starts.map((from, index) => ({
    part: index + 1,
    of: starts.length,
    // A surrogate pair must not be split, because UTF-8 cannot encode half of it.
    text: text.slice(wholeAt(text, from), wholeAt(text, from + partLength)),
  }));
}

/** Moves a position out of the middle of a surrogate pair. */
export function wholeAt(text: string, at: number): number {
  const code = at < text.length ? text.charCodeAt(at) : 0;
  return code >= 0xdc00 && code <= 0xdfff ? at + 1 : at;
}

/** Joins the parts of a large message. Null for a message that is not split, and when a part is missing or redacted. */
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

/** Removes cache marks, because they move from call to call and must not change the hash. */
export function withoutMarks(text: string): string {
  return text.replaceAll(/,"cache_control":\{[^{}]{0,200}\}/g, "");
}
