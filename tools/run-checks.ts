import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join, resolve, sep } from "node:path";
import process from "node:process";
import {
  clearCounts,
  closingText,
  countsFile,
  noCounts,
  readCounts,
  type FaultCounts,
  type TestCounts,
} from "./closing-line.ts";
import { argumentsAgain, countsWithAgain, filesAgain } from "./run-again.ts";
import { withoutSlowTests } from "./test-tiers.ts";

/** One step of `npm test`. */
export interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Runs while nothing else does. @default false */
  readonly isAlone?: boolean;
  /** Runs tests, and when few files fail, these once more behind all other steps. @default false */
  readonly runsAgain?: boolean;
}

/** What the fault suites of a run go through at least: a suite that met fewer faults has shown too little. */
const leastFaults: Readonly<Record<"default" | "all", FaultCounts>> = {
  default: { states: 600, kills: 8 },
  all: { states: 2000, kills: 30 },
};

const root: string = join(import.meta.dirname, "..");

function tool(name: string, args: readonly string[] = []): Step {
  // Some look at packages of the checkout, which has no built ones.
  return {
    name,
    command: process.execPath,
    args: ["--conditions=@throughline/source", `tools/check-${name}.ts`, ...args],
  };
}

const staticSteps: readonly Step[] = [
  { name: "lint", command: "oxlint", args: ["--quiet"] },
  { name: "format", command: "oxfmt", args: ["--check"] },
  tool("layers"),
  tool("errors"),
  tool("expressions"),
  tool("words"),
  tool("changesets"),
  { name: "exports", command: process.execPath, args: ["tools/public-exports.ts"] },
];

/** The page has the types of a browser, which no other source may see. */
const pageTypes: Step = { name: "types of the page", command: "tsc", args: ["-p", "apps/inspector"] };

/** The steps of the default tier: no slow test, and the examples of changed pages only. */
function defaultSteps(): readonly Step[] {
  return [
    { name: "start", command: process.execPath, args: ["tools/check-first-start.mjs", "--once"], isAlone: true },
    ...staticSteps,
    { name: "types", command: "tsc", args: ["-p", "."] },
    pageTypes,
    { name: "tests", command: "vitest", args: ["run", ...withoutSlowTests], isAlone: true },
    tool("docs", ["--changed"]),
  ];
}

/**
 * The steps of the whole tier: everything but the suites of `npm run test:long`. A strict run takes one failure of a test
 * for a failure.
 */
function allSteps(isStrict: boolean): readonly Step[] {
  return [
    ...staticSteps,
    // The reference needs the declarations of every package, which take as long as the types.
    tool("api"),
    { name: "types", command: "tsc", args: ["-p", ".", "--incremental", "false"] },
    pageTypes,
    { name: "tests", command: "vitest", args: ["run"], isAlone: true, runsAgain: !isStrict },
    tool("docs"),
  ];
}

/** The steps for some files or folders: all their tests, the slow ones too, their form, and their types. */
function stepsOfPaths(paths: readonly string[]): readonly Step[] {
  const projects = [...new Set(paths.map(projectOf).filter((folder) => folder !== null))];
  return [
    { name: "lint", command: "oxlint", args: ["--quiet", ...paths] },
    { name: "format", command: "oxfmt", args: ["--check", ...paths] },
    ...(projects.length === 0 ? [] : [{ name: "types", command: "tsc", args: ["-b", ...projects] }]),
    { name: "tests", command: "vitest", args: ["run", ...paths], isAlone: true },
  ];
}

/** The nearest folder at or above a path that the compiler has settings for, below the root; null where there is none. */
function projectOf(path: string): string | null {
  for (let folder = resolve(root, path); folder.startsWith(`${root}${sep}`); folder = dirname(folder))
    if (existsSync(join(folder, "tsconfig.json"))) return folder;
  return null;
}

/** Runs one step, with its output going straight through when it is alone, and as a whole behind it when it is not. */
async function runStep(step: Step, write: (text: string) => void): Promise<boolean> {
  const isAlone = step.isAlone === true;
  const head = `\n== ${step.name}\n`;
  if (isAlone) write(head);
  const startMs = performance.now();
  const { passed, output } = await runProcess(step, isAlone ? "inherit" : "pipe");
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  write(`${isAlone ? "" : head}${output}-- ${step.name}: ${passed ? "ok" : "FAILED"}, ${seconds} s\n`);
  return passed;
}

/** Whether the process ended with 0, and what it printed where that was not passed through. */
function runProcess(
  step: Step,
  stdio: "inherit" | "pipe",
): Promise<{ readonly passed: boolean; readonly output: string }> {
  const env = {
    ...process.env,
    // First on the path: the pinned Node and the tools of this checkout, whatever the shell has.
    PATH: `${join(root, "node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}`,
    THROUGHLINE_CLOSING_LINE: "deferred",
    // Several of the tools load the same sources.
    NODE_COMPILE_CACHE: join(root, "node_modules/.cache/tools"),
  };
  return new Promise((resolve) => {
    const child = spawn(step.command, [...step.args], { cwd: root, env, stdio: ["inherit", stdio, stdio] });
    const chunks: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => chunks.push(chunk));
    const output = (): string => Buffer.concat(chunks).toString("utf8");
    child.on("error", (error) => resolve({ passed: false, output: `${output()}${error.message}\n` }));
    child.on("close", (code) => resolve({ passed: code === 0, output: output() }));
  });
}

/** Steps that run beside each other, and those that run alone between them. */
function groupsOf(steps: readonly Step[]): readonly (readonly Step[])[] {
  const groups: Step[][] = [];
  for (const step of steps) {
    const last = groups.at(-1);
    if (last === undefined || step.isAlone === true || last[0]?.isAlone === true) groups.push([step]);
    else last.push(step);
  }
  return groups;
}

/** Runs all steps, two at a time where they may; gives the names of those that failed, in the order of the steps. */
async function runAll(steps: readonly Step[], write: (text: string) => void): Promise<string[]> {
  const failed = new Set<Step>();
  for (const group of groupsOf(steps)) {
    const waiting = group.values();
    const lane = async (): Promise<void> => {
      for (const step of waiting) if (!(await runStep(step, write))) failed.add(step);
    };
    await Promise.all([lane(), lane()]);
  }
  return steps.filter((step) => failed.has(step)).map(({ name }) => name);
}

/** Runs the failed files of a step once more, alone, if they are few; gives the counts of both runs, null when none counts. */
async function runAgain(
  step: Step,
  first: TestCounts,
  write: (text: string) => void,
  countsPath: string,
): Promise<TestCounts | null> {
  if (filesAgain(first).length === 0) return null;
  clearCounts(countsPath);
  const args = [...step.args, ...argumentsAgain(first)];
  const passed = await runStep({ ...step, name: `${step.name} again`, args }, write);
  const counts = readCounts(countsPath);
  // A run that died, or that failed outside of its tests, has shown nothing about them.
  return counts === null || (!passed && counts.failed === 0) ? null : countsWithAgain(first, counts);
}

/** Runs every step, the failed ones too, and ends with the closing line; gives the exit code. */
export async function runSteps(
  steps: readonly Step[],
  write: (text: string) => void,
  countsPath: string = countsFile,
  least: FaultCounts | null = null,
): Promise<number> {
  clearCounts(countsPath);
  const failed = await runAll(steps, write);
  // No counts means that the run died before its end; that is a failure, not an empty success.
  const first = readCounts(countsPath) ?? noCounts;
  const again = steps.find(({ name, runsAgain }) => runsAgain === true && failed.includes(name));
  const joined = again === undefined ? null : await runAgain(again, first, write, countsPath);
  if (joined?.failed === 0) failed.splice(failed.indexOf(again?.name ?? ""), 1);
  const counts = joined ?? first;
  const { states = 0, kills = 0 } = counts.faults ?? {};
  if (least !== null && (states < least.states || kills < least.kills)) {
    write(`faults: ${states} states, ${kills} kills; at least ${least.states} and ${least.kills}\n`);
    failed.push("faults");
  }
  write(`\nsteps: ${failed.length === 0 ? "all passed" : `failed: ${failed.join(", ")}`}\n`);
  write(`${closingText(counts)}\n`);
  return failed.length > 0 || counts.failed > 0 ? 1 : 0;
}

const usage = `usage: npm test [-- --all [--strict] | PATH ...]
Without arguments: everything that a change can break within minutes. --all adds the slow tests and the examples of all pages.
When at most three files fail in it, these run once more, alone; what passes then is unstable. With --strict nothing runs again.
Paths: all tests below these files and folders, their form and their types.
`;

/** What the arguments of `npm test` ask for; null when they ask for nothing that exists. */
function planOf(
  args: readonly string[],
): { readonly steps: readonly Step[]; readonly least: FaultCounts | null } | null {
  if (args.length === 0) return { steps: defaultSteps(), least: leastFaults.default };
  if (["--all", "--all --strict"].includes(args.join(" ")))
    return { steps: allSteps(args.length > 1), least: leastFaults.all };
  if (args.some((arg) => arg.startsWith("-") || !existsSync(join(root, arg)))) return null;
  return { steps: stepsOfPaths(args), least: null };
}

if (import.meta.main) {
  const plan = planOf(process.argv.slice(2));
  if (plan === null) {
    process.stderr.write(usage);
    process.stdout.write(`${closingText(noCounts)}\n`);
    process.exitCode = 2;
  } else process.exitCode = await runSteps(plan.steps, (text) => process.stdout.write(text), countsFile, plan.least);
}
