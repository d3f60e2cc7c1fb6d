// Versions of a question and of its answer. NUMBER is that of a message in what every command prints.
// node src/main.ts ask QUESTION          asks
// node src/main.ts again                 asks for another answer to the last question
// node src/main.ts edit NUMBER QUESTION  asks another version of a question
// node src/main.ts next NUMBER           shows the next version of a message, and what followed it; `previous` the one before
// node src/main.ts show                  prints the conversation
import process from "node:process";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions, type Session } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

const [command = "", ...words] = process.argv.slice(2);
const { ANTHROPIC_API_KEY: apiKey = "", ANTHROPIC_BASE_URL: baseUrl, SESSIONS = "sessions.db" } = process.env;
const store = createSqliteStore({ path: SESSIONS });
const model = anthropic("claude-sonnet-5", { apiKey, baseUrl });
const sessions = createSessions({ store, model });

/** The id of the message with the number that the user gave. */
async function recordIdOf(session: Session): Promise<string> {
  const { messages } = await session.transcript();
  const message = messages[Number(words[0]) - 1];
  if (message === undefined) throw new Error(`There is no message ${words[0] ?? ""}.`);
  return message.recordId;
}

async function move(session: Session, by: 1 | -1): Promise<void> {
  const recordId = await recordIdOf(session);
  const branches = await session.branches(recordId);
  const branch = branches[branches.findIndex((each) => each.recordId === recordId) + by];
  if (branch === undefined) throw new Error(`Message ${words[0] ?? ""} has no such version.`);
  await session.switchTo(branch.recordId);
}

async function show(session: Session): Promise<void> {
  const { messages } = await session.transcript({ branches: true });
  for (const [at, { role, content, branches }] of messages.entries()) {
    const text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
    const switcher = branches === undefined ? "" : ` < ${branches.position}/${branches.count} >`;
    console.log(`${at + 1} ${role}: ${text}${switcher}`);
  }
}

const commands: Readonly<Record<string, (session: Session) => Promise<unknown>>> = {
  ask: (session) => session.runTurn(words.join(" ")),
  again: (session) => session.regenerate(),
  edit: async (session) => session.edit(await recordIdOf(session), words.slice(1).join(" ")),
  next: (session) => move(session, 1),
  previous: (session) => move(session, -1),
  show: async () => undefined,
};

try {
  const run = commands[command];
  if (run === undefined || apiKey === "") {
    console.error(
      "ANTHROPIC_API_KEY=… node src/main.ts ask QUESTION | again | edit NUMBER QUESTION | next NUMBER | previous NUMBER | show",
    );
    process.exitCode = 2;
  } else {
    const session = await sessions.open("home");
    await run(session);
    await show(session);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await sessions.close();
  await store.close();
}
