import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { killMatrix, kitProblems, matrixText, summaryLine } from "../packages/store-conformance/test/kill-matrix.ts";
import { repositoryRoot } from "./find-files.ts";

/** Runs every conformance case against every broken store and prints the matrix; `--write` also writes it to the docs. */
if (import.meta.main) {
  const rows = await killMatrix();
  process.stdout.write(`${matrixText(rows)}\n${summaryLine(rows)}\n`);
  if (process.argv.includes("--write"))
    writeFileSync(join(repositoryRoot, "docs/internal/kill-matrix.md"), matrixText(rows));
  process.exitCode = kitProblems(rows).length === 0 ? 0 : 1;
}
