import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Holds one message of a conversation, with the label by which questions name it as their evidence. */
interface SetRecord {
  readonly label: string;
  readonly message: Readonly<Record<string, unknown>>;
}

export interface SetSession {
  readonly name: string;
  /** The records follow each other by a minute. */
  readonly startMs: number;
  readonly records: readonly SetRecord[];
}

interface Conversation {
  readonly name: string;
  readonly sessions: readonly SetSession[];
}

interface SetQuestion {
  readonly id: string;
  readonly conversation: string;
  readonly text: string;
  /** The question is answered by any of these records. */
  readonly evidence: readonly string[];
}

/** Holds conversations, and questions about them whose answer stands in a known place. */
export interface QuestionSet {
  readonly conversations: readonly Conversation[];
  readonly questions: readonly SetQuestion[];
}

export const setNames = ["locomo", "beam", "beam-later", "own"] as const;
export type SetName = (typeof setNames)[number];

/** Reads a set: our own from this repository, and the public ones from a folder. */
export function readSet(name: SetName, folder: string): QuestionSet {
  if (name === "own") return readOwn(join(import.meta.dirname, "../search-questions"));
  if (name === "locomo") return readLocomo(join(folder, "locomo10.json"));
  return readBeam(join(folder, "beam"), name === "beam" ? 1 : 11);
}

function json(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

interface LocomoTurn {
  readonly speaker: string;
  readonly dia_id: string;
  readonly text: string;
  readonly blip_caption?: string;
}

interface LocomoSample {
  readonly sample_id: string;
  readonly conversation: Readonly<Record<string, unknown>>;
  readonly qa: readonly {
    readonly question: string;
    readonly evidence?: readonly string[];
    readonly category: number;
  }[];
}

/** Category 5 asks about what nobody said. */
const unanswerable = 5;

function readLocomo(path: string): QuestionSet {
  const conversations: Conversation[] = [];
  const questions: SetQuestion[] = [];
  for (const { sample_id: name, conversation, qa } of json(path) as readonly LocomoSample[]) {
    const sessions = Object.entries(conversation).flatMap(([key, turns]) =>
      Array.isArray(turns) ? [locomoSession(name, key, turns as readonly LocomoTurn[], conversation)] : [],
    );
    conversations.push({ name, sessions });
    const known = new Set(sessions.flatMap(({ records }) => records.map(({ label }) => label)));
    for (const [index, { question, evidence = [], category }] of qa.entries()) {
      const labels = evidence
        .flatMap((each) => each.split(/[;\s]+/))
        .map((each) => `${name}/${each}`)
        .filter((label) => known.has(label));
      if (category !== unanswerable && labels.length > 0)
        questions.push({ id: `${name}/${index}`, conversation: name, text: question, evidence: labels });
    }
  }
  return { conversations, questions };
}

function locomoSession(
  name: string,
  key: string,
  turns: readonly LocomoTurn[],
  conversation: Readonly<Record<string, unknown>>,
): SetSession {
  // The form is "1:56 pm on 8 May, 2023".
  const [time = "", day = ""] = String(conversation[`${key}_date_time`]).split(" on ");
  const records = turns.map(({ speaker, dia_id: id, text, blip_caption: caption }) => {
    const said = `${speaker}: ${text}${caption === undefined ? "" : ` [shows ${caption}]`}`;
    const role = speaker === conversation["speaker_a"] ? "user" : "assistant";
    return { label: `${name}/${id}`, message: { role, content: [{ type: "text", text: said }] } };
  });
  return { name: key, startMs: Date.parse(`${day} ${time} UTC`), records };
}

interface BeamTurn {
  readonly role: string;
  readonly id: number;
  readonly content: string;
  readonly time_anchor?: string;
}

/** The other kinds ask for an answer that no place of the chat holds, or for behavior in place of a fact. */
const beamKinds = [
  "information_extraction",
  "knowledge_update",
  "contradiction_resolution",
  "multi_session_reasoning",
  "temporal_reasoning",
  "event_ordering",
  "summarization",
];
const beamChats = 10;

function readBeam(folder: string, first: number): QuestionSet {
  const conversations: Conversation[] = [];
  const questions: SetQuestion[] = [];
  for (let chat = first; chat < first + beamChats; chat++) {
    const name = `chat${chat}`;
    const batches = json(join(folder, `${chat}/chat.json`)) as readonly { readonly turns: readonly BeamTurn[][] }[];
    const sessions = batches.map(({ turns }, batch) => beamSession(name, batch, turns.flat()));
    conversations.push({ name, sessions });
    const asked = json(join(folder, `${chat}/probing_questions/probing_questions.json`)) as Readonly<
      Record<string, readonly { readonly question: string; readonly source_chat_ids?: unknown }[]>
    >;
    for (const kind of beamKinds)
      for (const [index, { question, source_chat_ids: ids }] of (asked[kind] ?? []).entries()) {
        const evidence = numbersIn(ids).map((id) => `${name}/${id}`);
        const id = `${name}/${kind}/${index}`;
        if (evidence.length > 0) questions.push({ id, conversation: name, text: question, evidence });
      }
  }
  return { conversations, questions };
}

function beamSession(chat: string, batch: number, turns: readonly BeamTurn[]): SetSession {
  const anchor = turns.find(({ time_anchor: time }) => time !== undefined)?.time_anchor ?? "January-01-2024";
  const records = turns.map(({ role, id, content }) => ({
    label: `${chat}/${id}`,
    // The generator of the chats ended each question of the user with its plan, such as "->-> 1,4".
    message: { role, content: [{ type: "text", text: content.split("->->")[0]?.trim() ?? "" }] },
  }));
  return { name: `batch${batch + 1}`, startMs: Date.parse(`${anchor.replaceAll("-", " ")} UTC`), records };
}

function numbersIn(value: unknown): readonly number[] {
  if (typeof value === "number") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(numbersIn);
}

/** Reads the form that the README of the folder describes. */
function readOwn(folder: string): QuestionSet {
  const files = readdirSync(folder).filter((name) => name.endsWith(".txt"));
  const sessions = files
    .filter((name) => name !== "questions.txt")
    .toSorted()
    .map((name) => ownSession(name.slice(0, -4), readFileSync(join(folder, name), "utf8")));
  const known = new Set(sessions.flatMap(({ records }) => records.map(({ label }) => label)));
  const lines = readFileSync(join(folder, "questions.txt"), "utf8").split("\n");
  const questions = lines.flatMap((line, index) => {
    const [labels, text] = line.split(" | ");
    if (labels === undefined || text === undefined) return [];
    const evidence = labels.split(",");
    const unknown = evidence.filter((label) => !known.has(label));
    if (unknown.length > 0)
      throw new Error(`questions.txt:${index + 1}: no record has the label ${unknown.join(", ")}`);
    return [{ id: `own/${index + 1}`, conversation: "own", text, evidence }];
  });
  return { conversations: [{ name: "own", sessions }], questions };
}

const ownRoles: Readonly<Record<string, string>> = { user: "user", assistant: "assistant", result: "toolResult" };

function ownSession(name: string, text: string): SetSession {
  const [first = "", ...lines] = text.split("\n");
  const blocks: { head: string; lines: string[] }[] = [];
  for (const line of lines) {
    const head = /^(?:user|assistant|call \w+|result)(?: [\w-]+)?:/.exec(line)?.[0];
    if (head !== undefined) blocks.push({ head: head.slice(0, -1), lines: [line.slice(head.length + 1)] });
    else blocks.at(-1)?.lines.push(line.startsWith("  ") ? line.slice(2) : line);
  }
  let calls = 0;
  let toolName = "";
  const records = blocks.map(({ head, lines: body }, index) => {
    const said = body.join("\n").trim();
    const [role = "", second, third] = head.split(" ");
    const label = `${name}/${(role === "call" ? third : second) ?? `line${index}`}`;
    const content = [{ type: "text", text: said }];
    if (role === "call") {
      toolName = second ?? "";
      const call = { type: "toolCall", id: `call${++calls}`, name: toolName, arguments: { command: said } };
      return { label, message: { role: "assistant", content: [call] } };
    }
    const answered = role === "result" ? { toolCallId: `call${calls}`, toolName, isError: false } : {};
    return { label, message: { role: ownRoles[role], content, ...answered } };
  });
  return { name, startMs: Date.parse(first), records };
}
