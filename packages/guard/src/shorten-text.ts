/** A shortened text and how much of it was kept at each end. */
export interface ShortenedText {
  readonly text: string;
  readonly headCharacters: number;
  readonly tailCharacters: number;
}

/** A result is never cut to less than this: the marker alone has 80 characters. */
export const leastCharacters = 200;

/** So much of what is kept stands at the end, where commands print how they ended. */
const tailShare = 0.3;
/** The longest marker, with the line feeds around it. */
const markerCharacters = 100;
const markerStart = "\n\n[... truncated (";
const markerRest = /^(\d{1,15}) chars total, showing first \d{1,15}(?: and last \d{1,15})?\) \.\.\.\](?:\n\n|$)/;

/** How long a text was before it was shortened, as the first marker in it says; null when there is none. */
function statedLength(text: string): number | null {
  for (let at = text.indexOf(markerStart); at !== -1; at = text.indexOf(markerStart, at + 1)) {
    const start = at + markerStart.length;
    const match = markerRest.exec(text.slice(start, start + markerCharacters));
    if (match !== null) return Number(match[1]);
  }
  return null;
}

/**
 * Keeps the head and the tail of a text, cut at lines where that costs less than half of the part, and says between
 * them how much there was. Null when the text is short enough. The same text and limit give the same bytes.
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

/** Puts a text together from as much of its ends as a change says. */
export function joinParts(text: string, headCharacters: number, tailCharacters: number): string {
  // A text that was shortened before knows how long it was.
  const total = statedLength(text) ?? text.length;
  const ends = tailCharacters === 0 ? `first ${headCharacters}` : `first ${headCharacters} and last ${tailCharacters}`;
  const tail = tailCharacters === 0 ? "" : `\n\n${text.slice(text.length - tailCharacters)}`;
  return `${text.slice(0, headCharacters)}\n\n[... truncated (${total} chars total, showing ${ends}) ...]${tail}`;
}

/** Keeps the head alone, up to the last line that fits, as the first document's guard does. */
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

/** Never between the halves of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}
