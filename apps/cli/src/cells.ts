import stringWidth from "fast-string-width";

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

const plain = /^[ -~]*$/;

/** Vowels of Indian scripts that stand beside their letter: they take a cell, which `fast-string-width` does not count. */
const spacingMark = /\p{Mc}/gu;

/** The cells that a text takes on a terminal: wide scripts and emoji take two each. */
export function cellWidth(text: string): number {
  // Most cells of a table are plain: 200,000 of them are measured ten times as fast.
  return plain.test(text) ? text.length : stringWidth(text) + (text.match(spacingMark)?.length ?? 0);
}

/** The place where a text that is too long loses its characters. */
export type Cut = "start" | "middle" | "end";

/** A text in at most `width` cells. A long key keeps both ends, a sentence its beginning, a path its end. */
export function shorten(text: string, width: number, cut: Cut = "middle"): string {
  // Each code unit takes two cells at most.
  if (text.length * 2 <= width || cellWidth(text) <= width) return text;
  const tailCells = { start: Math.max(0, width - 1), middle: Math.floor((width - 1) / 3), end: 0 }[cut];
  const headCells = Math.max(0, width - 1 - tailCells);
  const start = text.slice(0, headCells * longestGrapheme);
  const end = tailCells === 0 ? "" : text.slice(-tailCells * longestGrapheme);
  return `${fitting(clusters(start), headCells)}…${fitting(clusters(end).toReversed(), tailCells, "reversed")}`;
}

/** `shorten` reads only the ends of a long text; a longer cluster is no character that a person reads. */
const longestGrapheme = 32;

function clusters(text: string): readonly string[] {
  return Array.from(graphemes.segment(text.toWellFormed()), ({ segment }) => segment);
}

/** The first clusters that fit into this number of cells. */
function fitting(parts: readonly string[], cells: number, order: "forward" | "reversed" = "forward"): string {
  let used = 0;
  const taken: string[] = [];
  for (const part of parts) {
    used += cellWidth(part);
    if (used > cells) break;
    taken.push(part);
  }
  return (order === "reversed" ? taken.toReversed() : taken).join("");
}
