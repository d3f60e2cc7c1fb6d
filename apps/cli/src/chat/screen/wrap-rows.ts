import { wrapAnsi } from "fast-wrap-ansi";

/** Wrapping takes a time that grows with the text, so a long one is wrapped in pieces. */
const pieceCharacters = 4096;
const widestProse = 100;

/** The width that prose is wrapped at: lines of a wide screen would be hard to read. */
export function proseWidth(columns: number): number {
  return Math.max(1, Math.min(columns - 1, widestProse));
}

/** Breaks a text, which may hold styles, at words into rows of at most `width` cells; longer words are cut. */
export function wrapRows(text: string, width: number): readonly string[] {
  if (text.length <= pieceCharacters) return wrapAnsi(text, width, { hard: true, trim: true }).split("\n");
  const rows: string[] = [];
  for (let at = 0; at < text.length;) {
    const end = pieceEnd(text, at);
    for (const row of wrapAnsi(text.slice(at, end), width, { hard: true, trim: true }).split("\n")) rows.push(row);
    at = end;
  }
  return rows;
}

/** A piece ends behind a space where it has one, so that no word is cut in two. */
function pieceEnd(text: string, at: number): number {
  if (text.length - at <= pieceCharacters) return text.length;
  const space = text.lastIndexOf(" ", at + pieceCharacters);
  return space > at ? space + 1 : at + pieceCharacters;
}
