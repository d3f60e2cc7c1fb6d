import { shorten } from "../../cells.ts";
import { terminalSafeLine } from "../../terminal-safe.ts";
import type { Signs } from "../screen/signs.ts";
import type { Style, Styles } from "../screen/styles.ts";
import type { ChangeLine } from "./change-lines.ts";

export interface ChangeLook {
  readonly styles: Styles;
  readonly signs: Signs;
  readonly columns: number;
}

/** A narrower screen has no room for numbers of lines. */
const leastNumbered = 40;
const tab = "    ";

/** Returns the lines as rows. @param isCut true where a row must not be wider than the screen */
export function changeRows(
  lines: readonly ChangeLine[],
  { styles, signs, columns }: ChangeLook,
  isCut: boolean,
): readonly string[] {
  const digits = String(Math.max(0, ...lines.map(({ before, after }) => Math.max(before ?? 0, after ?? 0)))).length;
  const cells = columns >= leastNumbered ? digits : 0;
  const hasBefore = lines.some(({ before }) => before !== null);
  return lines.map(({ kind, before, after, text }) => {
    if (kind === "gap") return styles.dim(`  ${signs.ellipsis}`);
    const old = hasBefore ? `${numbered(before, cells)} ` : "";
    const numbers = cells === 0 ? "" : `${old}${numbered(after, cells)} `;
    const code = terminalSafeLine(text.replaceAll("\t", tab));
    const room = Math.max(1, columns - 5 - numbers.length);
    const shown = isCut ? shorten(code, room, "end") : code;
    return `  ${styles.dim(numbers)}${styleOf(kind, styles)(`${marks[kind]} ${shown}`.trimEnd())}`;
  });
}

const marks = { same: " ", added: "+", removed: "-" } as const;

function numbered(line: number | null, cells: number): string {
  return (line === null ? "" : String(line)).padStart(cells);
}

function styleOf(kind: ChangeLine["kind"], { green, red }: Styles): Style {
  if (kind === "added") return green;
  return kind === "removed" ? red : (text) => text;
}
