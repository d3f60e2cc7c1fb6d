import type { MarkdownOptions } from "./markdown-inline.ts";

/** Lines are colored in blocks, each with the one before it, so that a row has the same colors however it arrived. */
const blockLines = 30;
/** A longer text is data. */
const mostLines = 2000;
const indent = "  ";

/** Returns the rows of whole code. */
export function codeRows(lines: readonly string[], language: string, options: MarkdownOptions): readonly string[] {
  return codeRowsFrom(lines, 0, lines.length, { language, options });
}

export interface CodeLook {
  readonly language: string;
  readonly options: MarkdownOptions;
}

/** Returns the rows of the lines from `first` to before `end`. Code is indented and never wrapped. */
export function codeRowsFrom(lines: readonly string[], first: number, end: number, look: CodeLook): readonly string[] {
  const rows: string[] = [];
  for (let at = first; at < end;) {
    const block = Math.floor(at / blockLines);
    const stop = Math.min(end, (block + 1) * blockLines);
    const from = Math.max(0, (block - 1) * blockLines);
    for (const row of coloredLines(lines.slice(from, stop), at < mostLines ? look.language : "", look.options).slice(
      at - from,
    ))
      rows.push(`${indent}${row}`);
    at = stop;
  }
  return rows;
}

function coloredLines(
  lines: readonly string[],
  language: string,
  { styles, highlighter }: MarkdownOptions,
): readonly string[] {
  const code = lines.map((line) => line.replaceAll("\t", "    "));
  const plainStyle = language === "" ? (line: string): string => line : styles.cyan;
  return highlighter.lines(code, language) ?? code.map(plainStyle);
}
