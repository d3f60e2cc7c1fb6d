import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The tables under a heading of SPEC.md, row by row. */
export function tablesOf(heading: string): string[][][] {
  const text = readFileSync(join(import.meta.dirname, "..", "SPEC.md"), "utf8");
  const section = (text.split(`## ${heading}\n`)[1] ?? "").split("\n## ")[0] ?? "";
  return section
    .split(/\n(?!\|)/)
    .map((part) => part.split("\n").filter((line) => line.startsWith("|")))
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map(cellsOf).filter((cells) => !cells.every((cell) => cell === "---")));
}

function cellsOf(line: string): string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll("`", ""));
}

/** The first column without its heading. */
export function namesOf(table: string[][]): string[] {
  return table.slice(1).map(([name = ""]) => name);
}
