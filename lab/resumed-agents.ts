// Claude Code, Codex, Gemini CLI, pi, opencode and Qwen Code, each resumed by the command that `resume` and `handoff` print, against a
// provider on this machine: what the program then sends must hold the whole conversation in order, and everything that a model would
// get of the imported session. Sessions of Qwen Code in every shape are resumed too, beside the values of the tests. The exit code is 1
// on a difference. The agents are installed into a folder of their own, from the npm registry; each conversation has an empty home.
// node --conditions=@throughline/source lab/resumed-agents.ts [--only codex,…] [folder that keeps the packages]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { installAgents } from "./agent-programs.ts";
import { skippedPrefix } from "../tools/long-suite.ts";
import { handedOff, resumedHere, type Outcome } from "./resumed-agents/conversations.ts";
import { type AgentProgram, agentProgramList } from "./resumed-agents/programs.ts";
import { shapesOfQwenCode } from "./resumed-agents/qwen-shapes.ts";

const { values, positionals } = parseArgs({ options: { only: { type: "string" } }, allowPositionals: true });
const [given] = positionals;
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-resumed-agents-"));

async function row(program: AgentProgram, how: string, run: () => Promise<Outcome>): Promise<boolean> {
  const { command, problems } = await run();
  const cells = [program.name, program.version, how, command, problems.length === 0 ? "yes" : "no"];
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
  for (const problem of problems) process.stdout.write(`FAIL ${program.name}, ${how}: ${problem}\n`);
  return problems.length === 0;
}

async function runProgram(program: AgentProgram): Promise<boolean> {
  const bin = join(folder, "node_modules/.bin", program.program);
  const own = mkdtempSync(join(folder, "run-"));
  try {
    const place = { bin, folder: own, program };
    const results = [await row(program, "resumed", () => resumedHere(place))];
    if (program.program !== "qwen") results.push(await row(program, "handed off", () => handedOff(place)));
    else results.push(await row(program, "in every shape", () => shapesOfQwenCode(place)));
    return results.every(Boolean);
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

try {
  const more = Object.fromEntries(agentProgramList.map(({ packageName, version }) => [packageName, version]));
  if (installAgents(folder, more)) {
    process.stdout.write("| program | version | session | command | sends the conversation |\n");
    process.stdout.write("| --- | --- | --- | --- | --- |\n");
    const only = values.only?.split(",");
    for (const program of agentProgramList)
      if ((only?.includes(program.program) ?? true) && !(await runProgram(program))) process.exitCode = 1;
  } else process.stdout.write(`${skippedPrefix}the agents could not be installed\n`);
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
