import { styledWidth } from "../../cells.ts";
import type { Tokens } from "marked";
import { inlineText, type MarkdownOptions } from "./markdown-inline.ts";
import { wrapRows } from "./wrap-rows.ts";

const narrowestColumn = 6;
const separatorCells = 3;

/** Returns a table whose cells are wrapped to fit; one that does not fit is a list of `header: cell` lines. */
export function tableRows({ header, rows }: Tokens.Table, options: MarkdownOptions, width: number): readonly string[] {
  const heads = header.map(({ tokens }) => inlineText(tokens, options));
  const cells = rows.map((row) => row.map(({ tokens }) => inlineText(tokens, options)));
  const widths = columnWidths([heads, ...cells], width);
  if (widths === null) return cells.flatMap((row) => listedRow(heads, row, options, width));
  const { styles, signs } = options;
  const separator = styles.dim(` ${signs.bar} `);
  const line = (row: readonly string[], isHead: boolean): readonly string[] => {
    const wrapped = widths.map((own, index) => wrapRows(row[index] ?? "", own));
    const height = Math.max(...wrapped.map(({ length }) => length));
    return Array.from({ length: height }, (_, at) =>
      wrapped
        .map((parts, index) => padded(isHead ? styles.bold(parts[at] ?? "") : (parts[at] ?? ""), widths[index] ?? 0))
        .join(separator)
        .trimEnd(),
    );
  };
  const rule = styles.dim(widths.map((own) => signs.line.repeat(own)).join(`${signs.line}${signs.cross}${signs.line}`));
  return [...line(heads, true), rule, ...cells.flatMap((row) => line(row, false))];
}

/** Makes the widest column narrower until all fit; null where they cannot. */
function columnWidths(rows: readonly (readonly string[])[], width: number): readonly number[] | null {
  const count = rows[0]?.length ?? 0;
  const room = width - separatorCells * (count - 1);
  if (count === 0 || room < count * narrowestColumn) return null;
  const widths = Array.from({ length: count }, (_, index) =>
    Math.max(1, ...rows.map((row) => Math.min(width, styledWidth(row[index] ?? "")))),
  );
  for (let excess = widths.reduce((sum, own) => sum + own, 0) - room; excess > 0; excess--) {
    const widest = widths.indexOf(Math.max(...widths));
    widths[widest] = (widths[widest] ?? 1) - 1;
  }
  return widths;
}

function listedRow(
  heads: readonly string[],
  row: readonly string[],
  options: MarkdownOptions,
  width: number,
): readonly string[] {
  return row.flatMap((cell, index) => wrapRows(`${options.styles.bold(`${heads[index] ?? ""}:`)} ${cell}`, width));
}

function padded(text: string, width: number): string {
  return `${text}${" ".repeat(Math.max(0, width - styledWidth(text)))}`;
}
