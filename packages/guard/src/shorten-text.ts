export interface ShortenedText {
  readonly text: string;
  readonly headCharacters: number;
  readonly tailCharacters: number;
}

/** A result is never cut below this length, because the marker alone has 80 characters. */
export const leastCharacters = 200;

/** A share of the kept text comes from the end, because commands print their outcome there. */
const tailShare = 0.3;
/** Reserves room for the longest marker and the line feeds around it. */
const markerCharacters = 100;
const markerStart = "\n\n[... truncated (";
const markerRest = /^(\d{1,15}) chars total, showing first \d{1,15}(?: and last \d{1,15})?\) \.\.\.\](?:\n\n|$)/;

/** Reads the original length from the first marker in a text; null when the text was not shortened before. */
function statedLength(text: string): number | null {
  for (let at = text.indexOf(markerStart); at !== -1; at = text.indexOf(markerStart, at + 1)) {
    const start = at + markerStart.length;
    const match = markerRest.exec(text.slice(start, start + markerCharacters));
    if (match !== null) return Number(match[1]);
  }
  return null;
}

/**
 * Keeps the head and the tail of a text, and a marker between them states the original length. A cut is at a line break
 * unless that costs half of the part. Null when the text is short enough. The same text and limit give the same bytes,
 * because provider caches rely on that.
 */
export function shortenText(text: string, mostCharacters: number): ShortenedText | null {
  if (text.length <= mostCharacters) return null;
  const room = Math.max(leastCharacters, mostCharacters) - markerCharacters;
  const tail = Math.floor(room * tailShare);
  const headCharacters = headEnd(text, room - tail);
  const tailCharacters = text.length - tailStart(text, text.length - tail);
  const shortened = joinParts(text, headCharacters, tailCharacters);
  return shortened.length < text.length ? { text: shortened, headCharacters, tailCharacters } : null;
}

/** Joins the ends of a text with the marker, so that a stored change gives the same bytes again. */
export function joinParts(text: string, headCharacters: number, tailCharacters: number): string {
  // The marker of an earlier shortening states the original length.
  const total = statedLength(text) ?? text.length;
  const ends = tailCharacters === 0 ? `first ${headCharacters}` : `first ${headCharacters} and last ${tailCharacters}`;
  const tail = tailCharacters === 0 ? "" : `\n\n${text.slice(text.length - tailCharacters)}`;
  return `${text.slice(0, headCharacters)}\n\n[... truncated (${total} chars total, showing ${ends}) ...]${tail}`;
}

/** Keeps only the head, up to the last line that fits. `keep: "head"` selects this form. */
export function shortenToHead(text: string, mostCharacters: number): ShortenedText | null {
  if (text.length <= mostCharacters) return null;
  const line = text.lastIndexOf("\n", mostCharacters - 1);
  const headCharacters = line > 0 ? line : wholeCharacter(text, mostCharacters);
  return { text: joinParts(text, headCharacters, 0), headCharacters, tailCharacters: 0 };
}

function headEnd(text: string, most: number): number {
  const line = text.lastIndexOf("\n", most);
  return line > most / 2 ? line : wholeCharacter(text, most);
}

function tailStart(text: string, from: number): number {
  const line = text.indexOf("\n", from);
  const isNear = line !== -1 && line - from < (text.length - from) / 2;
  return isNear ? line + 1 : wholeCharacter(text, from);
}

/** A cut never separates the halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}
