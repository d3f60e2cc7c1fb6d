// Claude Code, Codex and opencode, each configured as the guide says, through the gateway and directly against the provider
// simulator: the same answers and exit codes. What they sent must be stored, given back byte for byte, and lie in the sessions
// where a person would look. The exit code is 1 on a difference. The agents are installed into a folder of their own, from the npm
// registry; each conversation has an empty home.
// node --conditions=@throughline/source lab/gateway-agents.ts [--only codex,…] [folder that keeps the packages]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { agentPackages, installAgents } from "./agent-programs.ts";
import { type AgentRun, agentRuns } from "./gateway-agents/agent-runs.ts";
import { converse, type Conversation } from "./gateway-agents/converse.ts";
import { startStand } from "./gateway-agents/stand.ts";
import { readRecorded, type Recorded } from "./gateway-agents/recorded.ts";
import { skippedPrefix } from "../tools/long-suite.ts";

const { values, positionals } = parseArgs({ options: { only: { type: "string" } }, allowPositionals: true });
const [given] = positionals;
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-gateway-agents-"));

/** What the gateway changed for the program. */
function differences(direct: Conversation, through: Conversation): readonly string[] {
  return direct.steps.flatMap((step, index) => {
    const other = through.steps[index];
    const isSame = other?.exitCode === step.exitCode && other.output === step.output;
    return isSame
      ? []
      : [`${step.name}: ${JSON.stringify(step)} directly, ${JSON.stringify(other)} through the gateway`];
  });
}

async function run(one: AgentRun): Promise<readonly string[]> {
  const { program, name, packageName, mode } = one;
  const bin = join(folder, "node_modules/.bin", program);
  const own = mkdtempSync(join(folder, "run-"));
  let direct: Conversation;
  let through: Conversation;
  let recorded: Recorded;
  try {
    // A provider that refuses what is too long has to be healed: directly, nothing is too long.
    const plain = await startStand(join(own, "direct"), null);
    try {
      direct = await converse(one, { bin, folder: own, stand: plain });
    } finally {
      await plain.close();
    }
    const stand = await startStand(join(own, "gateway"), { mode, credentials: one.credentials });
    try {
      through = await converse(one, { bin, folder: own, stand });
      recorded = await readRecorded(stand, through.steps.at(-1)?.output ?? "");
    } finally {
      await stand.close();
    }
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
  const { calls, stored, givenBack, sessions, elsewhere, probes, problems } = recorded;
  const all = [...differences(direct, through), ...problems];
  const cells = [
    name,
    agentPackages[packageName],
    mode,
    one.steps.map((step) => step.name).join(", "),
    `${calls}`,
    `${stored}`,
    `${givenBack}`,
    `${sessions}`,
    `${elsewhere}`,
    probes.join(", "),
    all.length === 0 ? "yes" : "no",
  ];
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
  return all.map((problem) => `${name}, ${mode}: ${problem}`);
}

try {
  if (installAgents(folder)) {
    process.stdout.write(
      "| program | version | mode | conversation | calls | stored | given back | sessions | calls elsewhere | asks for besides | same |\n" +
        "| --- | --- | --- | --- | --: | --: | --: | --: | --: | --- | --- |\n",
    );
    const problems: string[] = [];
    const only = values.only?.split(",");
    for (const one of agentRuns) if (only?.includes(one.program) ?? true) problems.push(...(await run(one)));
    for (const problem of problems) process.stdout.write(`FAIL ${problem}\n`);
    if (problems.length > 0) process.exitCode = 1;
  } else process.stdout.write(`${skippedPrefix}the agents could not be installed\n`);
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
