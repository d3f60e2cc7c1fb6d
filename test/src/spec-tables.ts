import { readFileSync } from "node:fs";

/** Holds rows of cells; the first row is the heading. */
type Table = readonly (readonly string[])[];

/**
 * Reads the tables under one heading of a specification.
 * @param path a Markdown file
 * @param heading a heading of the second level, without its marks
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

/**
 * Converts a table of states and steps to the form of the code. A cell with `-` becomes null: the state has no such
 * step.
 */
export function stepTable([heading = [], ...rows]: Table): Record<string, Record<string, string | null>> {
  const steps = heading.slice(1);
  return Object.fromEntries(
    rows.map(([state = "", ...cells]) => [
      state,
      Object.fromEntries(cells.map((cell, index) => [steps[index], cell === "-" ? null : cell])),
    ]),
  );
}

export function firstColumn(table: Table): readonly string[] {
  return table.slice(1).map(([name = ""]) => name);
}
