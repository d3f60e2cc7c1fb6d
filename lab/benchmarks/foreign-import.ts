// Imports of Claude Code's and Codex's lines beside the import of pi's, each in a process of its own: megabytes a second,
// the ratio to pi, and the peak of the memory at a small and a large size, which must not differ much.
// node --conditions=@throughline/source lab/benchmarks/foreign-import.ts [megabytes, smallest first] [rounds] [--check]
// The default of 20,100 takes a minute or two. 100,1000 needs 3 GB below the folder for temporary files.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";
import { importPaths } from "../../packages/transfer/src/index.ts";
import { lineFormats, writeLines, type LineFormat } from "./foreign-lines.ts";
import { median } from "../../benchmarks/measure.ts";

interface ImportRun {
  readonly state: string;
  readonly format: string;
  readonly lines: number;
  readonly records: number;
  readonly lost: number;
  readonly seconds: number;
  readonly peakRssMb: number;
}

/** The speed over that of pi, and how much more memory the large size may take. See docs/decisions/2026-11-27-foreign-import-cost.md. */
const leastRatio = 0.38;
const mostGrowthMb = 150;

const [mode = "", source = "", database = ""] = process.argv.slice(2);
if (mode === "--import") await importHere(source, database);
else
  main(
    process.argv.slice(2).filter((word) => word !== "--check"),
    process.argv.includes("--check"),
  );

async function importHere(path: string, store: string): Promise<void> {
  const startedMs = performance.now();
  const runs: Omit<ImportRun, "seconds" | "peakRssMb">[] = [];
  {
    await using sqlite = createSqliteStore({ path: store, create: true });
    for await (const { state, format, lines, records, lost, error } of importPaths(sqlite, [path])) {
      if (error !== null) throw error;
      runs.push({ state, format, lines, records, lost: lost.length });
    }
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const peakRssMb = Math.round(process.resourceUsage().maxRSS / 1024);
  process.stdout.write(JSON.stringify({ ...runs[0], seconds, peakRssMb }));
}

function main([sizes = "20,100", rounds = "3"]: readonly string[], isChecked: boolean): void {
  const folder = mkdtempSync(join(tmpdir(), "foreign-import-"));
  const problems: string[] = [];
  const peaks = new Map<string, number>();
  try {
    for (const size of sizes.split(",").map(Number)) {
      const runs = runsOf(folder, size, Number(rounds), problems);
      const speedOf = (name: LineFormat): number => median(runs.get(name)?.map(({ seconds }) => size / seconds) ?? []);
      for (const name of lineFormats) {
        const ratio = speedOf(name) / speedOf("pi");
        const peakMb = Math.max(...(runs.get(name)?.map(({ peakRssMb }) => peakRssMb) ?? []));
        const [run] = runs.get(name) ?? [];
        process.stdout.write(
          `${name.padEnd(12)} ${size} MB, ${run?.lines} lines: ${speedOf(name).toFixed(1)} MB/s, ${ratio.toFixed(2)} of pi, peak ${peakMb} MB\n`,
        );
        if (ratio < leastRatio) problems.push(`${name}: ${ratio.toFixed(2)} of the speed of pi's import`);
        const before = peaks.get(name) ?? peakMb;
        if (peakMb - before > mostGrowthMb)
          problems.push(`${name}: ${before} MB of memory at first, ${peakMb} MB with ${size} MB`);
        peaks.set(name, before);
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  process.stdout.write(`foreign import: ${problems.length === 0 ? "as promised" : problems.join("; ")}\n`);
  if (isChecked && problems.length > 0) process.exitCode = 1;
}

/** The formats take turns, so that none has the machine at a better time. */
function runsOf(
  folder: string,
  size: number,
  rounds: number,
  problems: string[],
): ReadonlyMap<LineFormat, readonly ImportRun[]> {
  const runs = new Map<LineFormat, ImportRun[]>(lineFormats.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const name of lineFormats) {
      const [path, store] = [join(folder, `${name}.jsonl`), join(folder, "store.db")];
      const lines = writeLines(path, name, size * 1e6);
      const run = importApart(path, store);
      const isWhole = run.format === name && run.state === "imported" && run.lines === lines && run.records === lines;
      if (!isWhole || run.lost > 0)
        problems.push(`${name}: ${JSON.stringify(run)} of ${lines} lines, ${statSync(path).size} bytes`);
      runs.get(name)?.push(run);
      for (const file of [path, store, `${store}-wal`, `${store}-shm`]) rmSync(file, { force: true });
    }
  }
  return runs;
}

function importApart(path: string, store: string): ImportRun {
  const args = ["--conditions=@throughline/source", import.meta.filename, "--import", path, store];
  const child = spawnSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  if (child.status !== 0) throw new Error(`the import of ${path} ended with ${String(child.status)}`);
  return JSON.parse(child.stdout) as ImportRun;
}
