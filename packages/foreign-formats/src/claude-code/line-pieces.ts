import type { RecordDraft } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";
import { pieceType } from "./line-units.ts";

/**
 * A piece is text within JSON, where one character takes up to twelve bytes. The limit of characters follows from it.
 */
const mostBytes = 12;
const pieceCharacters = 1024 * 1024;
/** The pieces are numbered far above the line's other derived records, so that their ids never collide. */
const firstIndex = 1_000_000;

/**
 * The pieces hold a line that is longer than a record may be. They are derived from the line's record, so that a
 * redaction removes them too.
 */
export function linePieces(text: string, id: string, recordBytes: number): readonly RecordDraft[] {
  const length = Math.max(1, Math.min(pieceCharacters, Math.floor(recordBytes / mostBytes)));
  return piecesOf(text, length).map((piece, at) => {
    const derivedFrom = { id, index: firstIndex + at };
    return {
      type: "custom",
      customType: pieceType,
      appendMode: "side",
      id: `${id}~d${derivedFrom.index}`,
      sourceFormat: "claude-code",
      derivedFrom,
      data: { text: piece },
    };
  });
}

function piecesOf(text: string, length: number): readonly string[] {
  const pieces: string[] = [];
  let start = 0;
  while (start < text.length) {
    const end = Math.min(text.length, start + length);
    // A surrogate pair is never split.
    const isCut = end < text.length && /[\ud800-\udbff]/.test(text[end - 1] ?? "");
    pieces.push(text.slice(start, isCut ? end + 1 : end));
    start = isCut ? end + 1 : end;
  }
  return pieces;
}

/** The record of a long line keeps this many characters of each text, because the pieces hold the whole line. */
const keptCharacters = 20_000;
const mostValues = 10_000;

/** A record is limited in size. Long texts are cut, and images and files are replaced by a note about their size. */
export function shortenedLine(line: Fields): Fields {
  return shortened(line, { values: mostValues }) as Fields;
}

function shortened(value: unknown, left: { values: number }): unknown {
  left.values -= 1;
  if (typeof value === "string") return shortText(value);
  if (Array.isArray(value))
    return value.slice(0, Math.max(0, left.values)).map((inner: unknown) => shortened(inner, left));
  if (!isFields(value)) return value;
  const { type, source } = value;
  const data = isFields(source) ? source["data"] : undefined;
  if (typeof type === "string" && typeof data === "string" && data.length > keptCharacters)
    return { type: "text", text: `[${type} of ${data.length} characters, in the log]` };
  const kept = Object.entries(value).slice(0, Math.max(0, left.values));
  return Object.fromEntries(kept.map(([name, inner]) => [shortText(name), shortened(inner, left)]));
}

function shortText(text: string): string {
  if (text.length <= keptCharacters) return text;
  const left = text.length - keptCharacters;
  return `${text.slice(0, keptCharacters).toWellFormed()}\n[${left} more characters, in the log]`;
}
