import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { StoredRecord } from "../packages/core/src/index.ts";
import { createProviderSimulator, type ReceivedRequest, type SimulatedReply } from "../packages/testing/src/index.ts";
import type { Refusal } from "../packages/testing/src/simulator-options.ts";
import type { ReplyPart } from "../packages/testing/src/simulated-reply.ts";

export interface KillLoopOptions {
  /** The program, which takes a question, the id of the message, and the path of its store. */
  readonly program: string;
  /** The environment that makes its SDK talk to the simulator. */
  readonly environment: (url: string) => Readonly<Record<string, string>>;
  /** An empty folder, in which the program runs. */
  readonly folder: string;
  readonly kills: number;
  readonly seed: number;
  /** Reads the session of the program; called between two processes. */
  readonly records: (storePath: string) => Promise<readonly StoredRecord[]>;
}

/** What the newest turn had stored when its process was killed. */
export type KilledAt = "nothing" | "question" | "open calls" | "results" | "answer";

/** What the program was asked and sent, and what it printed. */
export interface KillLoopFigures {
  /** Each was sent again with the same id until the program ended by itself. */
  readonly questions: readonly string[];
  /** What the program printed when it ended by itself, by question. */
  readonly printed: readonly string[];
  /** One for each kill. */
  readonly kills: readonly KilledAt[];
  /** The messages of each request, in order. */
  readonly requests: readonly (readonly unknown[])[];
  readonly refusals: readonly Refusal[];
  /** The whole session at the end. */
  readonly records: readonly StoredRecord[];
}

/**
 * Asks a program questions and kills it with SIGKILL at random moments: some time after its start, or after it has sent its
 * first, second or third request. It is started again with the same arguments until it has answered.
 */
export async function killLoop(options: KillLoopOptions): Promise<KillLoopFigures> {
  const { folder, kills: wantedKills, seed } = options;
  const random = seededRandom(seed);
  writeFileSync(join(folder, "notes.txt"), "The harbor opens at six.\n");
  writeFileSync(join(folder, "todo.txt"), "Buy rope.\n");
  const received = { inRun: 0, onRequest: (): void => undefined };
  await using provider = createProviderSimulator({
    fallback: (request) => scriptedReply(request, Math.floor(random() * 40)),
    onRequest: () => {
      received.inRun += 1;
      received.onRequest();
    },
  });
  await provider.start();
  const storePath = join(folder, "sessions.db");
  const questions: string[] = [];
  const printed: string[] = [];
  const kills: KilledAt[] = [];
  let usualMs = 2000;
  while (kills.length < wantedKills || printed.length < questions.length) {
    if (printed.length === questions.length)
      questions.push(`Question ${questions.length + 1}: when does the harbor open?`);
    const isLastKill = kills.length >= wantedKills;
    const args = [questions.at(-1) ?? "", `message-${questions.length}`, storePath];
    const startedMs = performance.now();
    const child = spawn(process.execPath, ["--conditions=@throughline/source", options.program, ...args], {
      cwd: folder,
      env: { ...process.env, ...options.environment(provider.url) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = once(child, "close");
    received.inRun = 0;
    const kill = (): void => void child.kill("SIGKILL");
    let timer: NodeJS.Timeout | null = null;
    const killAfter = random() < 0.4 ? null : 1 + Math.floor(random() * 3);
    const delayMs = killAfter === null ? random() * usualMs * 1.2 : random() * 80;
    received.onRequest = () => {
      if (!isLastKill && received.inRun === killAfter) timer = setTimeout(kill, delayMs);
    };
    if (!isLastKill && killAfter === null) timer = setTimeout(kill, delayMs);
    const output = { out: "", error: "" };
    child.stdout.on("data", (data: Buffer) => (output.out += data.toString()));
    child.stderr.on("data", (data: Buffer) => (output.error += data.toString()));
    const [code, signal] = (await ended) as [number | null, string | null];
    if (timer !== null) clearTimeout(timer);
    if (signal === "SIGKILL") {
      kills.push(killedAt(await options.records(storePath), questions.at(-1) ?? ""));
      continue;
    }
    if (code !== 0) throw new Error(`The program ended with ${code ?? signal}: ${output.error}`);
    if (received.inRun > 0) usualMs = performance.now() - startedMs;
    printed.push(output.out);
  }
  const requests = provider.requests.map(messagesOf);
  const records = await options.records(storePath);
  return { questions, printed, kills, requests, refusals: [...provider.refusals], records };
}

/**
 * What went wrong, one line each; none when every request was valid and continued the one before it, and every question,
 * reply and result is in the log once.
 * @param rendered the messages of the whole session, as the program would send them
 */
export function findLoopProblems(run: KillLoopFigures, rendered: readonly unknown[]): readonly string[] {
  const { questions, printed, requests, refusals, records } = run;
  const messages = messagesIn(records);
  const asked = messages.flatMap(({ role, content }) => (role === "user" ? [content] : []));
  const repeated = (field: "responseId" | "toolCallId"): readonly string[] => {
    const ids = messages.flatMap(({ [field]: id }) => (id === undefined ? [] : [id]));
    return ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `${field} ${id} is stored twice`);
  };
  const shown = [...requests, rendered];
  return [
    ...refusals.map(({ request, message }) => `request ${request} was refused: ${message}`),
    ...(isSame(asked, questions) ? [] : [`asked ${questions.length} questions, stored ${JSON.stringify(asked)}`]),
    ...questions.flatMap((_, at) => (printed[at] === `${answerTo(at + 1)}\n` ? [] : [`printed ${printed[at]}`])),
    ...repeated("responseId"),
    ...repeated("toolCallId"),
    // Whatever a model was shown is shown again: it was in the log before it was sent, and nothing of it was lost.
    ...requests.flatMap((sent, at) =>
      isSame(shown[at + 1]?.slice(0, sent.length), sent) ? [] : [`request ${at + 2} does not continue the one before`],
    ),
  ];
}

interface StoredMessage {
  readonly role: string;
  readonly content: unknown;
  readonly responseId?: string;
  readonly toolCallId?: string;
}

function messagesIn(records: readonly StoredRecord[]): readonly StoredMessage[] {
  return records.flatMap(({ record }) => (record.type === "message" ? [record["message"] as StoredMessage] : []));
}

function killedAt(records: readonly StoredRecord[], question: string): KilledAt {
  const messages = messagesIn(records);
  const stored = messages.slice(messages.findIndex(({ content }) => content === question));
  const last = stored.at(-1);
  if (last === undefined || stored[0]?.content !== question) return "nothing";
  if (last.role === "user") return "question";
  if (last.role === "toolResult") return "results";
  return JSON.stringify(last.content).includes("toolCall") ? "open calls" : "answer";
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Two calls at once, then a third one, then the answer, by how far the newest question has come. */
function scriptedReply(request: ReceivedRequest, delayMs: number): SimulatedReply {
  const messages = messagesOf(request);
  const asked = messages.findLastIndex((message) => JSON.stringify(message).includes("Question "));
  const question = /Question (\d+)/.exec(JSON.stringify(messages[asked]))?.[1] ?? 0;
  const replies = messages.slice(asked).filter((message) => (message as { role?: unknown }).role === "assistant");
  const thinking: ReplyPart = { type: "thinking", thinking: `Step ${replies.length + 1} of question ${question}.` };
  const read = (name: string): ReplyPart => ({ type: "tool-call", name: "read_file", input: { name } });
  const list: ReplyPart = { type: "tool-call", name: "list_files", input: {} };
  const steps: readonly (readonly ReplyPart[])[] = [
    [thinking, { type: "text", text: "Let me look." }, list, read("notes.txt")],
    [thinking, read("todo.txt")],
    [thinking, { type: "text", text: answerTo(question) }],
  ];
  return { kind: "answer", content: steps[Math.min(replies.length, steps.length - 1)] ?? [], delayMs };
}

function answerTo(question: number | string): string {
  return `Answer ${question}: at six.`;
}

function messagesOf({ body }: ReceivedRequest): readonly unknown[] {
  return (body as { readonly messages?: readonly unknown[] }).messages ?? [];
}

/** The same numbers between 0 and 1 for the same seed. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
