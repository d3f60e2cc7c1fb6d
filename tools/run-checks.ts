import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import process from "node:process";
import { clearCounts, closingLine, readCounts, skippedLine } from "./closing-line.ts";

/** One step of `npm test`. */
interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

const root: string = join(import.meta.dirname, "..");

function tool(name: string): Step {
  return { name, command: process.execPath, args: [`tools/check-${name}.ts`] };
}

function steps(testFilters: readonly string[]): readonly Step[] {
  return [
    { name: "lint", command: "oxlint", args: ["--quiet"] },
    { name: "format", command: "oxfmt", args: ["--check"] },
    tool("layers"),
    tool("errors"),
    tool("requirements"),
    // Forced: an incremental check does not notice that the compiler options themselves have changed.
    { name: "types", command: "tsc", args: ["-b", "--force"] },
    { name: "tests", command: "vitest", args: ["run", ...testFilters] },
    tool("docs"),
  ];
}

/** Runs one step with its output going straight through; true when it ended with 0. */
function runStep(step: Step): Promise<boolean> {
  const env = {
    ...process.env,
    // First on the path: the pinned Node and the tools of this checkout, whatever the shell has.
    PATH: `${join(root, "node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}`,
    THROUGHLINE_CLOSING_LINE: "deferred",
  };
  return new Promise((resolve, reject) => {
    const child = spawn(step.command, [...step.args], { cwd: root, env, stdio: "inherit" });
    child.on("error", reject);
    child.on("close", (code) => resolve(code === 0));
  });
}

async function runAll(testFilters: readonly string[]): Promise<number> {
  clearCounts();
  const failed: string[] = [];
  for (const step of steps(testFilters)) {
    process.stdout.write(`\n== ${step.name}\n`);
    const startMs = performance.now();
    const passed = await runStep(step);
    if (!passed) failed.push(step.name);
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    process.stdout.write(`-- ${step.name}: ${passed ? "ok" : "FAILED"}, ${seconds} s\n`);
  }
  // No counts means that the run died before its end; that is a failure, not an empty success.
  const counts = readCounts() ?? { passed: 0, failed: 1, skipped: 0, skippedBecause: {} };
  const reasons = skippedLine(counts);
  process.stdout.write(`\nsteps: ${failed.length === 0 ? "all passed" : `failed: ${failed.join(", ")}`}\n`);
  process.stdout.write(`${reasons ? `${reasons}\n` : ""}${closingLine(counts)}\n`);
  return failed.length > 0 || counts.failed > 0 ? 1 : 0;
}

process.exitCode = await runAll(process.argv.slice(2));
