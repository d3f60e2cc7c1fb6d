import { readFileSync } from "node:fs";

/** A table of a specification: rows of cells, the heading first. */
type Table = readonly (readonly string[])[];

/**
 * The tables under a heading of a specification.
 * @param path a Markdown file
 * @param heading of the second level, without its marks
 */
export function specTables(path: string, heading: string): readonly Table[] {
  const section = (readFileSync(path, "utf8").split(`## ${heading}\n`)[1] ?? "").split("\n## ")[0] ?? "";
  return section
    .split(/\n(?!\|)/)
    .map((part) => part.split("\n").filter((line) => line.startsWith("|")))
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.map(cellsOf).filter((cells) => !cells.every((cell) => cell === "---")));
}

function cellsOf(line: string): readonly string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll("`", ""));
}

/** A table of states and steps as the code writes it; `-` stands for no step. */
export function stepTable([heading = [], ...rows]: Table): Record<string, Record<string, string | null>> {
  const steps = heading.slice(1);
  return Object.fromEntries(
    rows.map(([state = "", ...cells]) => [
      state,
      Object.fromEntries(cells.map((cell, index) => [steps[index], cell === "-" ? null : cell])),
    ]),
  );
}

/** The first column without its heading. */
export function firstColumn(table: Table): readonly string[] {
  return table.slice(1).map(([name = ""]) => name);
}
