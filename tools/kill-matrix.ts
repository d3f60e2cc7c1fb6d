import process from "node:process";
import { killMatrix, kitProblems, matrixText, summaryLine } from "../packages/store-conformance/test/kill-matrix.ts";

/** Runs every conformance case against every broken store and prints the matrix. */
if (import.meta.main) {
  const rows = await killMatrix();
  process.stdout.write(`${matrixText(rows)}\n${summaryLine(rows)}\n`);
  process.exitCode = kitProblems(rows).length === 0 ? 0 : 1;
}
