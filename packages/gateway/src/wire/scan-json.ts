export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface MemberSpan extends Span {
  readonly name: string;
  /** States where the member's name starts, so that the member can be removed with its name. */
  readonly nameFrom: number;
}

/** Limits the nesting of a value. A record may have 200 levels, and it wraps each value in a few levels. */
const mostLevels = 180;
const [quote, backslash, openArray, closeArray, openObject, closeObject] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/** Returns the members of a JSON object, or null for another text. Nested values are only skipped, not validated. */
export function membersOf(text: string): readonly MemberSpan[] | null {
  const members: MemberSpan[] = [];
  let at = skipBlank(text, 0);
  if (text.charCodeAt(at) !== openObject) return null;
  at = skipBlank(text, at + 1);
  if (text.charCodeAt(at) === closeObject) return isEnd(text, at + 1) ? members : null;
  for (;;) {
    const nameFrom = at;
    const nameEnd = endOfString(text, at);
    if (nameEnd === -1) return null;
    const name = parsedText(text.slice(at, nameEnd));
    at = skipBlank(text, nameEnd);
    if (name === null || text[at] !== ":") return null;
    const from = skipBlank(text, at + 1);
    const to = endOfValue(text, from);
    if (to === -1) return null;
    members.push({ name, nameFrom, from, to });
    at = skipBlank(text, to);
    if (text.charCodeAt(at) === closeObject) return isEnd(text, at + 1) ? members : null;
    if (text[at] !== ",") return null;
    at = skipBlank(text, at + 1);
  }
}

/** Returns the elements of the list at a position, or null when there is no list. */
export function elementsOf(text: string, { from, to }: Span): readonly Span[] | null {
  const elements: Span[] = [];
  if (text.charCodeAt(from) !== openArray) return null;
  let at = skipBlank(text, from + 1);
  if (text.charCodeAt(at) === closeArray) return at + 1 === to ? elements : null;
  for (;;) {
    const end = endOfValue(text, at);
    if (end === -1) return null;
    elements.push({ from: at, to: end });
    at = skipBlank(text, end);
    if (text.charCodeAt(at) === closeArray) return at + 1 === to ? elements : null;
    if (text[at] !== ",") return null;
    at = skipBlank(text, at + 1);
  }
}

/**
 * Returns the position after the closing quotation mark of the string that starts at `from`. The result is -1 when no
 * string starts there or the string has no end.
 */
export function endOfString(text: string, from: number): number {
  if (text.charCodeAt(from) !== quote) return -1;
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
  return -1;
}

function endOfValue(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first === quote) return endOfString(text, from);
  if (first !== openArray && first !== openObject) return endOfWord(text, from);
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = endOfString(text, at) - 1;
      if (at < 0) return -1;
    } else if (code === openArray || code === openObject) {
      depth++;
      if (depth > mostLevels) return -1;
    } else if (code === closeArray || code === closeObject) {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

/** Finds the end of a number, true, false or null without validating it. */
function endOfWord(text: string, from: number): number {
  let at = from;
  while (at < text.length && !isBlank(text.charCodeAt(at)) && !",]}".includes(text[at] as string)) at++;
  return at === from ? -1 : at;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function skipBlank(text: string, from: number): number {
  let at = from;
  while (isBlank(text.charCodeAt(at))) at++;
  return at;
}

function isEnd(text: string, from: number): boolean {
  return skipBlank(text, from) === text.length;
}

function parsedText(text: string): string | null {
  try {
    return JSON.parse(text) as string;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
