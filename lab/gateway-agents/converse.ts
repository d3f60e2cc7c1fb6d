import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { emptyHome } from "../agent-programs.ts";
import { type AgentRun, type AgentStep, replyOf } from "./agent-runs.ts";
import type { Stand } from "./stand.ts";

/** What a program printed and how it ended, step by step. */
export interface Conversation {
  readonly steps: readonly { readonly name: string; readonly exitCode: string; readonly output: string }[];
}

interface Place {
  readonly bin: string;
  readonly folder: string;
  readonly stand: Stand;
}

/** A program that hangs is a failure. */
const mostMs = 180_000;

/** Asks the program one question after the other, each in a process of its own. */
export async function converse(run: AgentRun, { bin, folder, stand }: Place): Promise<Conversation> {
  const base = emptyHome(folder);
  const project = join(base.HOME, "project");
  mkdirSync(project);
  const env = { ...base, ...run.setUp(stand, base.HOME, project) };
  const steps: { name: string; exitCode: string; output: string }[] = [];
  for (const [index, step] of run.steps.entries()) {
    stand.limitWindow(null);
    stand.answerWith(replyOf(step, stand));
    const words = run.words(step, index === 0);
    steps.push({ name: step.name, ...(await ask(step, { bin, words, cwd: project, env, stand })) });
  }
  return { steps };
}

interface Asking {
  readonly bin: string;
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly stand: Stand;
}

async function ask(
  step: AgentStep,
  { bin, words, cwd, env, stand }: Asking,
): Promise<{ readonly exitCode: string; readonly output: string }> {
  const before = stand.simulator.requests.length;
  const child = spawn(bin, words, { cwd, env, stdio: ["ignore", "pipe", "ignore"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  const deadline = setTimeout(() => child.kill("SIGKILL"), mostMs);
  const ended = new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(`${code ?? signal}`));
  });
  if (step.isInterrupted === true) void interrupt(child, stand, before);
  const exitCode = await ended;
  clearTimeout(deadline);
  // How much of an answer is shown before an interrupt is a matter of time.
  return { exitCode, output: step.isInterrupted === true ? "" : output.trim() };
}

/** Interrupts a program once an answer of many events has begun. */
async function interrupt(child: ChildProcess, stand: Stand, before: number): Promise<void> {
  while (stand.simulator.requests.length === before) await sleep(20);
  await sleep(1500);
  child.kill("SIGINT");
}
