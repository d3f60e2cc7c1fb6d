import { terminalSafeLine } from "./terminal-safe.ts";

export interface TableColumn {
  readonly title: string;
  /** @default "left" */
  readonly align?: "left" | "right";
  /** Columns of a higher number are left out first on a narrow terminal; 0 always stays. @default 0 */
  readonly rank?: number;
}

export interface TableLine {
  readonly text: string;
  readonly isHeading: boolean;
}

const gap = "  ";
const shortestCell = 8;

/**
 * Lines of a table. With a width: aligned, with a heading, columns left out and cells shortened until it fits. Without:
 * cells separated by tabs, whole and without a heading, for programs.
 */
export function layoutTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly string[])[],
  width: number | null,
): readonly TableLine[] {
  const cells = rows.map((row) => columns.map((_, index) => terminalSafeLine(row[index] ?? "")));
  if (width === null) return cells.map((row) => ({ text: row.join("\t"), isHeading: false }));
  const widths = columns.map(({ title }, index) =>
    cells.reduce((widest, row) => Math.max(widest, cellWidth(row[index] ?? "")), cellWidth(title)),
  );
  const shown = fitColumns(columns, widths, width);
  const line = (row: readonly string[]): string =>
    shown
      .map((index) => pad(row[index] ?? "", widths[index] ?? 0, columns[index]?.align ?? "left"))
      .join(gap)
      .trimEnd();
  const heading = { text: line(columns.map(({ title }) => title)), isHeading: true };
  return [heading, ...cells.map((row) => ({ text: line(row), isHeading: false }))];
}

/** Leaves out columns by rank, then shortens the widest one that is left; gives the columns shown. */
function fitColumns(columns: readonly TableColumn[], widths: number[], width: number): readonly number[] {
  let shown = columns.map((_, index) => index);
  const total = (): number => shown.reduce((sum, index) => sum + (widths[index] ?? 0) + gap.length, -gap.length);
  const ranks = [...new Set(columns.map(({ rank = 0 }) => rank))].filter((rank) => rank > 0).toSorted((a, b) => b - a);
  for (const rank of ranks) {
    if (total() <= width) break;
    shown = shown.filter((index) => (columns[index]?.rank ?? 0) < rank);
  }
  while (total() > width) {
    const widest = shown.reduce(
      (best, index) => ((widths[index] ?? 0) > (widths[best] ?? 0) ? index : best),
      shown[0] ?? 0,
    );
    const current = widths[widest] ?? 0;
    if (current <= shortestCell) break;
    widths[widest] = Math.max(shortestCell, current - (total() - width));
  }
  return shown;
}

function pad(text: string, width: number, align: "left" | "right"): string {
  const short = shorten(text, width);
  const fill = " ".repeat(Math.max(0, width - cellWidth(short)));
  return align === "right" ? fill + short : short + fill;
}

/** Keeps head and tail: of a long key both ends tell something. */
export function shorten(text: string, width: number): string {
  if (cellWidth(text) <= width) return text;
  const characters = Array.from(text);
  const tail = Math.floor((width - 1) / 3);
  const head = Math.max(1, width - 1 - tail);
  return `${characters.slice(0, head).join("")}…${tail > 0 ? characters.slice(-tail).join("") : ""}`;
}

/** Characters, not UTF-16 units. Wide scripts are counted as one: a line may then be too long, never garbled. */
function cellWidth(text: string): number {
  let width = 0;
  for (const _ of text) width += 1;
  return width;
}
