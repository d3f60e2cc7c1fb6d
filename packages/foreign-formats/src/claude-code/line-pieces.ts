import type { RecordDraft } from "@throughline/core";
import { isFields, type Fields } from "@throughline/core/internal";
import { pieceType } from "./line-units.ts";

/** A piece is text of JSON, in which a character takes up to twelve bytes. */
const mostBytes = 12;
const pieceCharacters = 1024 * 1024;
/** Behind the numbers of the records that a line means. */
const firstIndex = 1_000_000;

/** The records that hold the text of a line which is longer than a record may be. A redaction of the line takes them along. */
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
    // No pair of surrogates is cut in two.
    const isCut = end < text.length && /[\ud800-\udbff]/.test(text[end - 1] ?? "");
    pieces.push(text.slice(start, isCut ? end + 1 : end));
    start = isCut ? end + 1 : end;
  }
  return pieces;
}

/** What of a text stays in the record that says what the line means. */
const keptCharacters = 20_000;
const mostValues = 10_000;

/** A line without what makes it long: long texts are cut, and images and files are named. */
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
