import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionRef, SessionStore } from "../../packages/core/src/index.ts";
import { buildContext } from "../../packages/history/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { importPaths } from "../../packages/transfer/src/index.ts";
import { exportToFile, handOff, planResume } from "../../packages/transfer/src/internal.ts";
import type { ReceivedRequest, SimulatedReply } from "../../packages/testing/src/index.ts";
import { emptyHome } from "../agent-programs.ts";
import { factsOf } from "../gateway-agents/request-facts.ts";
import { startStand } from "../gateway-agents/stand.ts";
import { lastContent, startGeminiServer } from "./gemini-server.ts";
import { type AgentProgram, type Place, provider } from "./programs.ts";

export interface RunPlace {
  readonly bin: string;
  readonly folder: string;
  readonly program: AgentProgram;
}

/** What became of a session that a program resumed. */
export interface Outcome {
  /** The command for a terminal, without the ids. */
  readonly command: string;
  readonly problems: readonly string[];
}

/** Words that stand nowhere else in a request. */
const words = {
  question: "Question-alpha: run the program",
  preface: "Preface-beta.",
  printed: "printed-gamma",
  answer: "Answer-delta.",
  next: "Question-epsilon",
};
const shellCommand = `echo ${words.printed}`;

/** A provider that answers the program's questions, and keeps what it was asked. */
export interface Provider {
  readonly url: string;
  bodies(): readonly unknown[];
  close(): Promise<void>;
}

export async function startProvider(program: AgentProgram, folder: string): Promise<Provider> {
  if (program.api === "gemini") {
    const server = await startGeminiServer((body) => {
      const { text, isResult } = lastContent(body);
      if (isResult) return [{ text: words.answer }];
      const { name, input } = program.shell(shellCommand);
      const isFirst = text.includes(words.question);
      return isFirst ? [{ text: words.preface }, { functionCall: { name, args: input } }] : [{ text: "Fine." }];
    });
    return { url: server.url, bodies: () => server.bodies, close: () => server.close() };
  }
  const stand = await startStand(folder, null);
  stand.answerWith((request) => replyTo(request, program));
  const { simulator } = stand;
  return {
    url: simulator.url,
    bodies: () => simulator.requests.filter((one) => factsOf(one).asker === "main").map(({ body }) => body),
    close: () => stand.close(),
  };
}

function replyTo(request: ReceivedRequest, program: AgentProgram): SimulatedReply {
  const { asker, results } = factsOf(request);
  if (asker === "title") return "A title";
  const isLater = JSON.stringify(request.body).includes(words.next);
  if (isLater) return "Fine.";
  if (results > 0) return words.answer;
  return { kind: "answer", content: [{ type: "text", text: words.preface }, program.shell(shellCommand)] };
}

/** A program that hangs is a failure. */
const mostMs = 120_000;

export async function run(
  bin: string,
  args: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  const child = spawn(bin, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const deadline = setTimeout(() => child.kill("SIGKILL"), mostMs);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  clearTimeout(deadline);
  return code === 0 ? "" : `${bin} ${args.join(" ")} ended with ${code}: ${output.slice(-400)}`;
}

interface Stage {
  readonly place: Place;
  readonly env: NodeJS.ProcessEnv;
  readonly provider: Provider;
}

async function stage({ folder, program }: RunPlace): Promise<Stage> {
  const base = emptyHome(folder);
  const project = join(base.HOME, "project");
  mkdirSync(project);
  const started = await startProvider(program, mkdtempSync(join(folder, "stand-")));
  const place = { url: started.url, home: base.HOME, project };
  return { place, env: { ...base, ...program.setUp(place) }, provider: started };
}

/** The program itself has a conversation, which is imported and resumed by the command of `resume`. */
export async function resumedHere(where: RunPlace): Promise<Outcome> {
  const { bin, program } = where;
  const { place, env, provider: asked } = await stage(where);
  try {
    const begun = await run(bin, program.ask(words.question), { cwd: place.project, env });
    if (begun !== "") return { command: "", problems: [begun] };
    await using store = createMemoryStore();
    const ref = await importedFrom(store, place.home);
    if (ref === null) return { command: "", problems: ["no session was imported"] };
    const state = await store.load(ref);
    const plan = state === null ? null : await planResume(state);
    if (plan === null) return { command: "", problems: ["there is no command"] };
    const told = await textsOf(store, ref);
    const before = asked.bodies().length;
    const problem = await run(bin, program.resume(plan.command, words.next), { cwd: plan.cwd ?? place.project, env });
    const problems = [problem, ...missing(asked.bodies()[before], [...told, words.next])];
    const known = missing(told.join("\n"), [words.question, words.preface, words.printed, words.answer]);
    return { command: shownCommand(plan.command), problems: [...problems, ...known].filter((one) => one !== "") };
  } finally {
    await asked.close();
  }
}

/** A session of ours is handed off, and resumed by the command of `handoff`. */
export async function handedOff(where: RunPlace): Promise<Outcome> {
  const { bin, program } = where;
  const { place, env, provider: asked } = await stage(where);
  try {
    await using store = createMemoryStore();
    const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:main" };
    await fill(store, ref, place.project, program);
    const command = await written(store, ref, where, place, env);
    const before = asked.bodies().length;
    const problem = await run(bin, program.resume(command, words.next), { cwd: place.project, env });
    const { question, preface, printed, answer, next } = words;
    const problems = [problem, ...missing(asked.bodies()[before], [question, preface, printed, answer, next])];
    return { command: shownCommand(command), problems: problems.filter((one) => one !== "") };
  } finally {
    await asked.close();
  }
}

async function written(
  store: SessionStore,
  ref: SessionRef,
  { bin, program }: RunPlace,
  { home, project }: Place,
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  if (program.handOff !== null) {
    const options = { to: program.handOff, environment: env, userHome: home, workingDirectory: project };
    return (await handOff(store, ref, options)).command;
  }
  // opencode takes sessions by its own import.
  const path = join(home, "session.json");
  await exportToFile(store, ref, path, { to: "opencode" });
  const { info } = JSON.parse(readFileSync(path, "utf8")) as { readonly info: { readonly id: string } };
  const problem = await run(bin, ["import", path], { cwd: project, env });
  if (problem !== "") throw new Error(problem);
  return ["opencode", "--session", info.id];
}

async function fill(store: SessionStore, ref: SessionRef, cwd: string, program: AgentProgram): Promise<void> {
  const { name, input } = program.shell(shellCommand);
  const author = { api: "openai-responses", provider, model: "gpt-5" };
  const fields = typeof input === "string" ? { input } : input;
  await store.save(
    ref,
    { sessionId: "0b83cd1e-54ce-4a39-9089-188d2669ead4", cwd, label: "My name" },
    { ifRevision: null },
  );
  const messages = [
    { role: "user", content: words.question },
    {
      role: "assistant",
      ...author,
      content: [
        { type: "text", text: words.preface },
        { type: "toolCall", id: "call_1", name, arguments: fields },
      ],
      stopReason: "toolUse",
    },
    { role: "toolResult", toolCallId: "call_1", toolName: name, content: `${words.printed}\n`, isError: false },
    { role: "assistant", ...author, content: [{ type: "text", text: words.answer }], stopReason: "stop" },
  ];
  await store.append(
    ref,
    messages.map((message) => ({ type: "message", message })),
  );
}

async function importedFrom(store: SessionStore, home: string): Promise<SessionRef | null> {
  for await (const { agentId, key, error } of importPaths(store, [home]))
    if (error === null && agentId !== null && key !== null) return { namespace: "", agentId, key };
  return null;
}

/** The texts that a model would get of a session, in order. */
async function textsOf(store: SessionStore, ref: SessionRef): Promise<readonly string[]> {
  const headId = (await store.load(ref))?.head.headId ?? null;
  const records = (await Array.fromAsync(store.read(ref))).flatMap((page) => page.records);
  const { messages } = buildContext(records, { headId });
  return messages.flatMap(({ content }) => content.flatMap((block) => (block.type === "text" ? [block.text] : [])));
}

/** The words that a request lacks, or has in another order. */
export function missing(body: unknown, expected: readonly string[]): readonly string[] {
  const text = typeof body === "string" ? body : textIn(body);
  let at = 0;
  const problems: string[] = [];
  for (const one of expected) {
    const place = text.indexOf(one.trim(), at);
    if (place < 0) problems.push(`it did not send ${JSON.stringify(one.slice(0, 80))}`);
    else at = place + one.trim().length;
  }
  return problems;
}

/** All texts in a value, in order. */
function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  return Object.values(value).map(textIn).join("\n");
}

function shownCommand(command: readonly string[]): string {
  return `\`${command.map((word) => (/[0-9a-f]{8}|\//.test(word) ? "…" : word)).join(" ")}\``;
}
