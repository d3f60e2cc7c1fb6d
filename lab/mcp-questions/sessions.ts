import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { randomUUID } from "node:crypto";
import { sessionRef } from "../../packages/core/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { exportToFile } from "../../packages/transfer/src/internal.ts";
import { fillStore } from "../search-marks.ts";
import { readSet } from "../search-marks/question-set.ts";

export interface AskedQuestion {
  readonly text: string;
  /** Lists the texts of the records that answer it. */
  readonly evidence: readonly string[];
}

const texts: readonly string[] = [
  "Where is headersTimeout set?",
  "Warum bricht der nächtliche Import der Lagerbestände ab?",
  "Which test shows that parallel 401 answers refresh only once?",
];

/** Three of our questions: about code, in German, and about the output of a tool. */
export function askedQuestions(): readonly AskedQuestion[] {
  const { questions, conversations } = readSet("own", "");
  const records = conversations.flatMap(({ sessions }) => sessions.flatMap((session) => session.records));
  return texts.map((text) => {
    const labels = questions.find((one) => one.text === text)?.evidence ?? [];
    const found = records.filter(({ label }) => labels.includes(label));
    if (found.length === 0) throw new Error(`no question "${text}"`);
    return { text, evidence: found.map(({ message }) => textOf(message)) };
  });
}

function textOf({ content }: Readonly<Record<string, unknown>>): string {
  const [block] = content as readonly { readonly text?: string; readonly arguments?: { readonly command: string } }[];
  return plain(block?.text ?? block?.arguments?.command ?? "");
}

/** Joins the lines of a text, because snippets and quotations break them elsewhere. */
export function plain(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

/** Writes the sessions of our question set as transcripts of Claude Code, and imports them by command. */
export async function importSessions(bundle: string, env: NodeJS.ProcessEnv, project: string): Promise<void> {
  const set = readSet("own", "");
  await using store = createMemoryStore();
  await fillStore(store, set, true);
  const transcripts = join(env["HOME"] ?? "", ".claude/projects/-work");
  mkdirSync(transcripts, { recursive: true });
  for (const { sessions } of set.conversations)
    for (const { name } of sessions) {
      const ref = sessionRef({ key: `agent:all:own-${name}` });
      await exportToFile(store, ref, join(transcripts, `${randomUUID()}.jsonl`), { to: "claude-code" });
    }
  const words = [bundle, "import", transcripts, "--home", env["HOME"] ?? ""];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: project, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`the import ended with ${status}: ${stdout}${stderr}`);
}
