// Claude Code and Codex ask about past sessions: each starts `throughline mcp` over sessions that were imported from transcripts of
// Claude Code, and asks three of our questions, in English and German, about code and the output of a tool. The model is a script: it
// calls `search_sessions` with the question, reads the first place with `read_session`, and answers. A row says what the program gave
// to the model: at which place the evidence stood, and whether the second call held its text. The exit code is 1 when it did not.
// node --conditions=@throughline/source lab/mcp-questions.ts [--only codex] [folder that keeps the packages]
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { agentPackages, emptyHome, installAgents } from "./agent-programs.ts";
import { startStand, type Stand } from "./gateway-agents/stand.ts";
import { askingPrograms, type AskingProgram } from "./mcp-questions/programs.ts";
import { askedQuestions, importSessions, type AskedQuestion } from "./mcp-questions/sessions.ts";
import { replyFor, resultsFor, type ToolResults } from "./mcp-questions/script.ts";
import { run } from "./resumed-agents/conversations.ts";
import { installBundle } from "../tools/install-bundle.ts";
import { skippedPrefix } from "../tools/long-suite.ts";

const { values, positionals } = parseArgs({ options: { only: { type: "string" } }, allowPositionals: true });
const [given] = positionals;
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-mcp-questions-"));

interface Scene {
  readonly stand: Stand;
  readonly bundle: string;
}

/** Gives what a question got, or why it got nothing. */
async function ask(
  program: AskingProgram,
  question: AskedQuestion,
  { stand, bundle }: Scene,
): Promise<ToolResults | string> {
  const env = emptyHome(folder);
  const project = join(env.HOME, "project");
  mkdirSync(project);
  await importSessions(bundle, env, project);
  const bin = join(folder, "node_modules/.bin", program.program);
  const own = { ...env, ...program.setUp({ url: stand.simulator.url, home: env.HOME, project }) };
  const registered = await run(bin, program.register(bundle, env.HOME), { cwd: project, env: own });
  if (registered !== "") return registered;
  const before = stand.simulator.requests.length;
  stand.answerWith((request) => replyFor(program, question, request));
  const problem = await run(bin, program.ask(question.text), { cwd: project, env: own });
  if (problem !== "") return problem;
  return resultsFor(question, stand.simulator.requests.slice(before));
}

async function runProgram(program: AskingProgram, scene: Scene): Promise<boolean> {
  let isWhole = true;
  for (const question of askedQuestions()) {
    const got = await ask(program, question, scene);
    const [place, isRead] = typeof got === "string" ? [0, false] : [got.place, got.isRead];
    isWhole &&= isRead;
    const cells = [program.name, program.version, question.text, place === 0 ? "none" : place, isRead ? "yes" : "no"];
    process.stdout.write(`| ${cells.join(" | ")} |\n`);
    if (typeof got === "string") process.stdout.write(`FAIL ${program.name}: ${got}\n`);
    else if (!isRead) process.stdout.write(`FAIL ${program.name} got: ${JSON.stringify(got.texts)}\n`);
  }
  return isWhole;
}

const wanted = Object.fromEntries(askingPrograms.map(({ packageName, version }) => [packageName, version]));
try {
  if (installAgents(folder, {}, wanted)) {
    const { bin: bundle } = await installBundle(join(folder, "bundle"));
    const stand = await startStand(mkdtempSync(join(folder, "stand-")), null);
    process.stdout.write("| program | version | question | place of the evidence | its text was read |\n");
    process.stdout.write("| --- | --- | --- | --: | --- |\n");
    for (const program of askingPrograms)
      if (
        (values.only?.split(",").includes(program.program) ?? true) &&
        !(await runProgram(program, { stand, bundle }))
      )
        process.exitCode = 1;
    await stand.close();
  } else
    process.stdout.write(
      `${skippedPrefix}the agents could not be installed: ${Object.keys(agentPackages).join(", ")}\n`,
    );
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
