import stringWidth from "fast-string-width";

/** Returns the cells of a text that may hold styles, as the cursor moves. */
export const styledWidth: (text: string) => number = stringWidth;

/** The segmenter is made on use, because it reads tables of Unicode, which is 8 ms of each start. */
let graphemes: Intl.Segmenter | null = null;

const plain = /^[ -~]*$/;

/** `fast-string-width` does not count these vowels of Indian scripts, which occupy a cell beside their letter. */
const spacingMark = /\p{Mc}/gu;

/** Wide scripts and emoji take two cells each. */
export function cellWidth(text: string): number {
  // Most cells of a table are ASCII: measuring 200,000 of them is ten times faster this way.
  return plain.test(text) ? text.length : stringWidth(text) + (text.match(spacingMark)?.length ?? 0);
}

export type Cut = "start" | "middle" | "end";

/**
 * Shortens a text to at most `width` cells. A long key keeps both ends, a sentence its beginning, a path its end.
 * @param sign stands for what was cut; three dots become one where they would leave no text
 */
export function shorten(text: string, width: number, cut: Cut = "middle", sign: "…" | "..." = "…"): string {
  // Each code unit takes two cells at most.
  if (text.length * 2 <= width || cellWidth(text) <= width) return text;
  const mark = sign === "..." && width <= sign.length ? "." : sign;
  const room = width - mark.length;
  const tailCells = { start: Math.max(0, room), middle: Math.floor(room / 3), end: 0 }[cut];
  const headCells = Math.max(0, room - tailCells);
  const start = text.slice(0, headCells * longestGrapheme);
  const end = tailCells === 0 ? "" : text.slice(-tailCells * longestGrapheme);
  return `${fitting(clusters(start), headCells)}${mark}${fitting(clusters(end).toReversed(), tailCells, "reversed")}`;
}

/** Limits the part of a long text that `shorten` segments; longer clusters are not readable characters. */
const longestGrapheme = 32;

function clusters(text: string): readonly string[] {
  graphemes ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return Array.from(graphemes.segment(text.toWellFormed()), ({ segment }) => segment);
}

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

/** Returns whether the encoding that the environment names can show more than ASCII. */
export function showsUnicode(environment: Readonly<Record<string, string | undefined>>): boolean {
  const locale = [environment["LC_ALL"], environment["LC_CTYPE"], environment["LANG"]].find(
    (each) => (each ?? "") !== "",
  );
  return locale === undefined || /utf-?8/i.test(locale);
}

const asciiOf: Readonly<Record<string, string>> = {
  "●": "*",
  "❯": ">",
  "▮": "#",
  "▯": ".",
  "•": "-",
  "│": "|",
  "─": "-",
  "┼": "+",
  "·": "|",
  "→": ">",
};

/** Replaces the signs of ours by ASCII of the same width, and a cut by `dots`. */
export function asciiText(text: string, dots: "..." | "." = "..."): string {
  if (!/[●❯▮▯•│─┼·→…]/.test(text)) return text;
  return text.replace(/[●❯▮▯•│─┼·→…]/g, (sign) => asciiOf[sign] ?? dots);
}
