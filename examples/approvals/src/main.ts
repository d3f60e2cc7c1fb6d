// A tool call that waits for a person, for minutes or days: each command is a process of its own.
// node src/main.ts ask CUSTOMER QUESTION     answers, or ends while a refund waits
// node src/main.ts list                      prints the refunds of all customers that wait
// node src/main.ts allow CUSTOMER CALL       pays back, and answers
// node src/main.ts refuse CUSTOMER CALL WHY  answers without paying back
import { appendFileSync } from "node:fs";
import process from "node:process";
import { defineTool } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions, type Session } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

const usage =
  "ANTHROPIC_API_KEY=… node src/main.ts ask CUSTOMER QUESTION | list | allow CUSTOMER CALL | refuse CUSTOMER CALL WHY";
const dayMs = 24 * 60 * 60 * 1000;
const [command, customer = "", ...words] = process.argv.slice(2);
const { ANTHROPIC_API_KEY: apiKey = "", ANTHROPIC_BASE_URL: baseUrl, SESSIONS = "sessions.db" } = process.env;
const store = createSqliteStore({ path: SESSIONS });
const sessions = createSessions({
  store,
  model: anthropic("claude-sonnet-5", { apiKey, baseUrl }),
  tools: [
    defineTool({
      name: "refund",
      description: "Pays an order back.",
      input: { type: "object", properties: { order: { type: "string" } }, required: ["order"] },
      run: ({ order }) => {
        appendFileSync("paid.txt", `${order}\n`);
        return `Order ${order} is paid back.`;
      },
    }),
  ],
  // The facts are what the person sees who decides. Nobody needs a timer for the deadline.
  approveTool: () => ({ wait: { customer }, expiresAtMs: Date.now() + 7 * dayMs }),
});

const prefix = "agent:main:direct:";

async function listOf(key: string): Promise<void> {
  const session = await sessions.open(key, { create: false });
  for (const { callId, tool, arguments: given } of session.pendingApprovals)
    console.log(`${key.slice(prefix.length)}\t${callId}\t${tool} ${JSON.stringify(given)}`);
  await session.close();
}

async function list(): Promise<void> {
  let cursor: string | undefined;
  do {
    const page = await sessions.list({ keyPrefix: prefix, cursor });
    for (const { key, pendingApprovals } of page.sessions) if (pendingApprovals > 0) await listOf(key);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
}

async function decide(session: Session): Promise<void> {
  const [callId = "", ...why] = words;
  const answer = command === "allow" ? true : { refuse: why.join(" ") || "A person refused it." };
  const turn = await session.resume({ approvals: { [callId]: answer } });
  console.log(turn.outcome === "waiting" ? "Other calls wait." : turn.text);
}

async function ask(session: Session): Promise<void> {
  // What a killed process left: its answer, or a question that was not asked yet.
  if (session.interruptedTurn !== null) await session.resume();
  const turn = await session.runTurn(words.join(" "), { whenWaiting: "reject" });
  console.log(turn.outcome === "waiting" ? "A refund waits for a person: node src/main.ts list" : turn.text);
}

try {
  if (command === "list") await list();
  else if (["ask", "allow", "refuse"].includes(command ?? "") && words.length > 0 && apiKey !== "") {
    const session = await sessions.open(`${prefix}${customer}`);
    await (command === "ask" ? ask(session) : decide(session));
  } else {
    console.error(usage);
    process.exitCode = 2;
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await sessions.close();
  await store.close();
}
