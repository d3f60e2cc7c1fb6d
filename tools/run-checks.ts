import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import process from "node:process";
import { clearCounts, closingText, countsFile, readCounts, type FaultCounts } from "./closing-line.ts";

/** One step of `npm test`. */
export interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** What the fault suites of a whole run go through at least: a suite that met fewer faults has shown too little. */
const leastFaults: FaultCounts = { states: 2000, kills: 30 };

const root: string = join(import.meta.dirname, "..");

function tool(name: string): Step {
  return { name, command: process.execPath, args: [`tools/check-${name}.ts`] };
}

function stepsOf(testFilters: readonly string[]): readonly Step[] {
  return [
    { name: "lint", command: "oxlint", args: ["--quiet"] },
    { name: "format", command: "oxfmt", args: ["--check"] },
    tool("layers"),
    tool("errors"),
    tool("requirements"),
    tool("expressions"),
    tool("words"),
    { name: "exports", command: process.execPath, args: ["tools/public-exports.ts"] },
    // Forced: an incremental check does not notice that the compiler options themselves have changed.
    { name: "types", command: "tsc", args: ["-b", "--force"] },
    { name: "tests", command: "vitest", args: ["run", ...testFilters] },
    tool("docs"),
  ];
}

/** Runs one step with its output going straight through; true when it ended with 0. */
function runStep(step: Step, write: (text: string) => void): Promise<boolean> {
  const env = {
    ...process.env,
    // First on the path: the pinned Node and the tools of this checkout, whatever the shell has.
    PATH: `${join(root, "node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}`,
    THROUGHLINE_CLOSING_LINE: "deferred",
  };
  return new Promise((resolve) => {
    const child = spawn(step.command, [...step.args], { cwd: root, env, stdio: "inherit" });
    child.on("error", (error) => {
      write(`${error.message}\n`);
      resolve(false);
    });
    child.on("close", (code) => resolve(code === 0));
  });
}

/** Runs every step, the failed ones too, and ends with the closing line; gives the exit code. */
export async function runSteps(
  steps: readonly Step[],
  write: (text: string) => void,
  countsPath: string = countsFile,
  needsFaults: boolean = false,
): Promise<number> {
  clearCounts(countsPath);
  const failed: string[] = [];
  for (const step of steps) {
    write(`\n== ${step.name}\n`);
    const startMs = performance.now();
    const passed = await runStep(step, write);
    if (!passed) failed.push(step.name);
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    write(`-- ${step.name}: ${passed ? "ok" : "FAILED"}, ${seconds} s\n`);
  }
  // No counts means that the run died before its end; that is a failure, not an empty success.
  const counts = readCounts(countsPath) ?? { passed: 0, failed: 1, skipped: 0, skippedBecause: {}, faults: null };
  const { states = 0, kills = 0 } = counts.faults ?? {};
  if (needsFaults && (states < leastFaults.states || kills < leastFaults.kills)) {
    write(`faults: ${states} states, ${kills} kills; at least ${leastFaults.states} and ${leastFaults.kills}\n`);
    failed.push("faults");
  }
  write(`\nsteps: ${failed.length === 0 ? "all passed" : `failed: ${failed.join(", ")}`}\n`);
  write(`${closingText(counts)}\n`);
  return failed.length > 0 || counts.failed > 0 ? 1 : 0;
}

if (import.meta.main) {
  process.exitCode = await runSteps(
    stepsOf(process.argv.slice(2)),
    (text) => process.stdout.write(text),
    countsFile,
    process.argv.length === 2,
  );
}
