import { asciiText, cellWidth, shorten, type Cut } from "./cells.ts";
import { terminalSafeLine } from "./terminal-safe.ts";

export interface TableColumn {
  readonly title: string;
  /** Aligns the cells of the column. @default "left" */
  readonly align?: "left" | "right";
  /** Columns with a higher rank are omitted first on a narrow terminal; rank 0 always stays. @default 0 */
  readonly rank?: number;
  /**
   * Sets the cells that the column keeps when it is shortened; columns of a higher rank are omitted before
   * that. @default the widest cell
   */
  readonly least?: number;
  /** True if the column shrinks to its least width before other columns shrink. @default false */
  readonly givesFirst?: boolean;
  /** Sets the position at which a long cell loses text. @default "middle" */
  readonly cut?: Cut;
}

export interface TableLine {
  readonly text: string;
  readonly isHeading: boolean;
}

const gap = "  ";
const shortestCell = 8;

/**
 * Lays out a table. With a width, the table is aligned and has a heading; empty columns are omitted, and columns and
 * cells shrink until the table fits. A terminal without UTF-8 gets signs of ASCII. Without a width, whole cells are
 * separated by tabs and have no heading, because programs read them.
 */
export function layoutTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number | null,
  isAscii = false,
): readonly TableLine[] {
  const safe = (text: string): string => (isAscii ? asciiText(terminalSafeLine(text)) : terminalSafeLine(text));
  const cells = rows.map((row) => columns.map((_, index) => safe(row[index] ?? "")));
  if (width === null) return cells.map((row) => ({ text: row.join("\t"), isHeading: false }));
  const widths = columns.map(({ title }, index) =>
    cells.reduce((widest, row) => Math.max(widest, cellWidth(row[index] ?? "")), cellWidth(title)),
  );
  const shown = fitColumns(columns, cells, widths, width);
  const line = (row: readonly string[]): string =>
    shown
      .map((index) => pad(row[index] ?? "", widths[index] ?? 0, columns[index] ?? { title: "" }, isAscii))
      .join(gap)
      .trimEnd();
  const heading = { text: line(columns.map(({ title }) => title)), isHeading: true };
  return [heading, ...cells.map((row) => ({ text: line(row), isHeading: false }))];
}

/**
 * Omits empty columns, then columns by rank, until the rest fits at its least width. If even the shortest cells are too
 * wide, the last columns go, so that no row wraps. Then the widest columns shrink. Returns the shown columns.
 */
function fitColumns(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  widths: number[],
  width: number,
): readonly number[] {
  let shown = columns.map((_, index) => index);
  if (rows.length > 0) shown = shown.filter((index) => rows.some((row) => (row[index] ?? "") !== ""));
  const least = widths.map((each, index) => Math.min(each, columns[index]?.least ?? each));
  const total = (of: readonly number[]): number =>
    shown.reduce((sum, index) => sum + (of[index] ?? 0) + gap.length, -gap.length);
  const ranks = [...new Set(columns.map(({ rank = 0 }) => rank))].filter((rank) => rank > 0).toSorted((a, b) => b - a);
  for (const rank of ranks) {
    if (total(least) <= width) break;
    shown = shown.filter((index) => (columns[index]?.rank ?? 0) < rank);
  }
  const shortest = least.map((each) => Math.min(each, shortestCell));
  while (shown.length > 1 && total(shortest) > width) shown = shown.slice(0, -1);
  const first = widths.map((each, index) => (columns[index]?.givesFirst === true ? (least[index] ?? each) : each));
  // Columns shrink to their least width first, and further only if the row still does not fit.
  for (const floor of [first, least, shortest, least.map(() => 1)]) narrow(widths, shown, floor, width);
  return shown;
}

/** Takes cells from the columns that have most to spare, until the columns fit or no spare cell is left. */
function narrow(widths: number[], shown: readonly number[], floor: readonly number[], width: number): void {
  const spare = (index: number): number => (widths[index] ?? 0) - (floor[index] ?? 0);
  for (;;) {
    const over = shown.reduce((sum, index) => sum + (widths[index] ?? 0) + gap.length, -gap.length) - width;
    const [most = 0, next = 0] = [...new Set(shown.map(spare))].toSorted((one, other) => other - one);
    if (over <= 0 || most <= 0) return;
    const widest = shown.filter((index) => spare(index) === most);
    // The columns come down together to the next one, or share what is left to take.
    const each = Math.max(1, Math.min(most - Math.max(0, next), Math.floor(over / widest.length)));
    for (const index of each * widest.length > over ? widest.slice(0, over) : widest)
      widths[index] = (widths[index] ?? 0) - each;
  }
}

function pad(text: string, width: number, { align = "left", cut = "middle" }: TableColumn, isAscii: boolean): string {
  const short = shorten(text, width, cut, isAscii ? "..." : "…");
  const fill = " ".repeat(Math.max(0, width - cellWidth(short)));
  return align === "right" ? fill + short : short + fill;
}
