import stringWidth from "fast-string-width";
import type { EditBuffer } from "./edit-buffer.ts";

export interface EditLayout {
  readonly rows: readonly string[];
  readonly caretRow: number;
  readonly caretColumn: number;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * Breaks the typed text into rows of the terminal's width, with the prompt before the first row and an equal indent
 * before the others. The last column stays free, because terminals differ in what they do there. If there are more than
 * `mostRows`, the rows around the caret are shown.
 */
export function layoutEdit(
  { text, caret }: EditBuffer,
  { prompt, columns, mostRows }: { readonly prompt: string; readonly columns: number; readonly mostRows: number },
): EditLayout {
  const promptWidth = stringWidth(prompt);
  const indent = " ".repeat(promptWidth);
  const width = Math.max(promptWidth + 2, columns - 1);
  const rows: string[] = [];
  let row = prompt;
  let rowWidth = promptWidth;
  let at = 0;
  let place = { row: 0, column: promptWidth };
  const breakRow = (): void => {
    rows.push(row);
    row = indent;
    rowWidth = promptWidth;
  };
  for (const { segment } of graphemes.segment(text)) {
    const shown = segment === "\t" ? "  " : segment;
    const isBreak = segment === "\n" || segment === "\r\n";
    const segmentWidth = isBreak ? 0 : stringWidth(shown);
    if (!isBreak && rowWidth + segmentWidth > width) breakRow();
    if (at === caret) place = { row: rows.length, column: rowWidth };
    at += segment.length;
    if (isBreak) {
      breakRow();
      continue;
    }
    row += shown;
    rowWidth += segmentWidth;
  }
  // A caret after a full row moves to the next row, because the next character appears there.
  if (at === caret) {
    if (rowWidth >= width) breakRow();
    place = { row: rows.length, column: rowWidth };
  }
  rows.push(row);
  const first = Math.max(0, Math.min(place.row - Math.floor(mostRows / 2), rows.length - mostRows));
  return { rows: rows.slice(first, first + mostRows), caretRow: place.row - first, caretColumn: place.column };
}
