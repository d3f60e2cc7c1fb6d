import process from "node:process";

/** How many times as many cases a property is tried on as the suite tries: `THROUGHLINE_RUNS=10` for a night. */
const factor = Number(process.env["THROUGHLINE_RUNS"] ?? 1);

/** Options of a property. */
export function runs(count: number): { readonly numRuns: number } {
  return { numRuns: Math.ceil(count * factor) };
}
