// Runs what is too long for `npm test`, each suite in a process of its own, and prints one table.
// npm run test:long -- [--only a,b] [--quick] [--list] [--json]
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { chmodSync, createWriteStream, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { repositoryRoot } from "./find-files.ts";
import { skippedPrefix, type LongSuite, type SuiteCommand, type SuiteSize } from "./long-suite.ts";
import { longSuites } from "./long-suite-list.ts";

/** What became of a suite. */
export interface SuiteResult {
  readonly suite: string;
  readonly result: "passed" | "failed" | "skipped" | "aborted";
  /** The suite's own last line; the reason for one that was skipped or aborted. */
  readonly figure: string;
  readonly seconds: number;
  /** What repeats it, from the root of the repository. */
  readonly command: string;
}

/** Where the whole output of each suite is kept. */
const logFolder = join(repositoryRoot, "node_modules/.cache/throughline/long-suites");
/** How long a suite that is stopped may take to clean up, in milliseconds. */
const stopMs = 10_000;

interface RunOptions {
  readonly size: SuiteSize;
  /** Told before and after each suite. */
  readonly report: (line: string) => void;
  /** Stops the suite that runs; those that follow do not begin. */
  readonly signal: AbortSignal;
}

/** Runs the suites one after the other, the rest also after one has failed. */
export async function runSuites(
  suites: readonly LongSuite[],
  { size, report, signal }: RunOptions,
): Promise<readonly SuiteResult[]> {
  const results: SuiteResult[] = [];
  for (const suite of suites) {
    const command = shownCommand(suite.command(size));
    const base = { suite: suite.name, command };
    const missing = suite.missing();
    if (signal.aborted) {
      results.push({ ...base, result: "aborted", figure: "not begun", seconds: 0 });
      continue;
    }
    if (missing !== null) {
      results.push({ ...base, result: "skipped", figure: missing, seconds: 0 });
      report(`${suite.name}: skipped, ${missing}`);
      continue;
    }
    report(`${suite.name}: ${command}`);
    const startMs = performance.now();
    const ended = await runSuite(suite, size, signal);
    const seconds = Math.round((performance.now() - startMs) / 100) / 10;
    results.push({ ...base, ...ended, seconds });
    report(`${suite.name}: ${ended.result}, ${seconds} s, ${ended.figure}`);
  }
  return results;
}

/** Runs one suite in a process group and a temporary folder of its own, so that stopping it leaves nothing behind. */
async function runSuite(
  suite: LongSuite,
  size: SuiteSize,
  signal: AbortSignal,
): Promise<Pick<SuiteResult, "result" | "figure">> {
  const { program, args, env } = suite.command(size);
  const folder = mkdtempSync(join(tmpdir(), "throughline-long-"));
  // A database server that root starts runs as another user and must be able to pass through.
  chmodSync(folder, 0o711);
  mkdirSync(logFolder, { recursive: true });
  const logPath = join(logFolder, `${suite.name}.log`);
  const log = createWriteStream(logPath);
  const binaries = join(repositoryRoot, "node_modules/.bin");
  const child = spawn(program === "node" ? process.execPath : join(binaries, program), [...args], {
    cwd: repositoryRoot,
    detached: true,
    env: {
      ...process.env,
      ...env,
      TMPDIR: folder,
      PATH: `${binaries}${delimiter}${process.env["PATH"] ?? ""}`,
      NO_COLOR: "1",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      log.write(chunk);
      // The figure is at the end.
      output = (output + chunk).slice(-100_000);
    });
  const stop = (): void => stopGroup(child);
  signal.addEventListener("abort", stop, { once: true });
  try {
    const code = await new Promise<number | string>((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("close", (ended, byWhich) => resolve(ended ?? byWhich ?? "no exit code"));
    });
    const lines = output.split("\n").filter((line) => line.trim() !== "");
    if (signal.aborted) return { result: "aborted", figure: "stopped" };
    const skipped = program === "node" ? lines.find((line) => line.startsWith(skippedPrefix)) : undefined;
    if (code === 0 && skipped !== undefined)
      return { result: "skipped", figure: skipped.slice(skippedPrefix.length).trim() };
    const figure = figureOf(program, lines);
    if (code === 0) return { result: "passed", figure };
    return { result: "failed", figure: `exit ${code}; ${figure}; output: ${logPath}` };
  } finally {
    signal.removeEventListener("abort", stop);
    log.end();
    removeFolder(folder);
  }
}

/** Ends the process and everything it started: politely, and after a while by force. */
function stopGroup(child: ChildProcess): void {
  const send = (name: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name);
    } catch (error) {
      // The group has ended already.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  send("SIGTERM");
  const timer = setTimeout(() => send("SIGKILL"), stopMs);
  child.once("close", () => clearTimeout(timer));
}

/** Removes the folder and unmounts what a stopped suite has left mounted in it. */
function removeFolder(folder: string): void {
  if (process.platform === "linux") {
    const mounted = readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "")
      .filter((path) => path.startsWith(`${folder}/`));
    for (const path of mounted) spawnSync("umount", ["-l", path]);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

/** The last line, and of tests the counts. */
function figureOf(program: SuiteCommand["program"], lines: readonly string[]): string {
  const counts = lines.filter((line) => /^(?:faults|skipped|tests): /.test(line)).slice(-3);
  const figure = program === "vitest" && counts.length > 0 ? counts.join("; ") : (lines.at(-1) ?? "no output");
  return figure.trim().slice(0, 400);
}

function shownCommand({ program, args, env }: SuiteCommand): string {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return [...variables, program, ...args].join(" ");
}

/** The results as a table in plain text. */
export function resultTable(results: readonly SuiteResult[]): string {
  const rows = results.map(({ suite, result, figure, seconds, command }) => [
    suite,
    result,
    seconds.toFixed(1),
    figure,
    command,
  ]);
  const all = [["suite", "result", "seconds", "figure", "command"], ...rows];
  const widths = [0, 1, 2, 3].map((at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The exit code: 130 for a run that was stopped, 1 when a suite has failed. */
export function exitCodeOf(results: readonly SuiteResult[]): number {
  if (results.some(({ result }) => result === "aborted")) return 130;
  return results.some(({ result }) => result === "failed") ? 1 : 0;
}

/** The suites of these names, in the order of the list. @throws {Error} for a name that no suite has */
export function chooseSuites(all: readonly LongSuite[], only: string | undefined): readonly LongSuite[] {
  if (only === undefined) return all;
  const wanted = new Set(only.split(",").map((name) => name.trim()));
  for (const name of wanted)
    if (!all.some((suite) => suite.name === name))
      throw new Error(`--only: there is no suite "${name}". Run with --list to see the names.`);
  return all.filter(({ name }) => wanted.has(name));
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      quick: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const suites = chooseSuites(longSuites, values.only);
  const size: SuiteSize = values.quick ? "quick" : "full";
  if (values.list) {
    const listed = suites.map((suite) => {
      const command = shownCommand(suite.command(size));
      return { suite: suite.name, about: suite.about, missing: suite.missing(), command };
    });
    const lines = listed.map(
      ({ suite, about, missing }) => `${suite}: ${about}${missing === null ? "" : ` (skipped here: ${missing})`}`,
    );
    process.stdout.write(values.json ? `${JSON.stringify(listed, null, 2)}\n` : `${lines.join("\n")}\n`);
    return 0;
  }
  const abort = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => abort.abort());
  const results = await runSuites(suites, {
    size,
    report: (line) => void process.stderr.write(`${line}\n`),
    signal: abort.signal,
  });
  process.stdout.write(values.json ? `${JSON.stringify(results, null, 2)}\n` : `${resultTable(results)}\n`);
  return exitCodeOf(results);
}

if (import.meta.main) {
  try {
    process.exitCode = await main();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 2;
  }
}
