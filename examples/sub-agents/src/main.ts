// An agent whose model can start sub-agents. Each has a session of its own, below that of the agent.
// ANTHROPIC_API_KEY=… node --conditions=@throughline/source src/main.ts "Compare the two designs." [sessions.db]
import process from "node:process";
import { sessionRef } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { createSessionTools } from "@throughline/tools";
import { createSqliteStore } from "@throughline/store-sqlite";

const [task = "Start two sub-agents that each name one sea, and tell me both.", path = "sessions.db"] =
  process.argv.slice(2);

const store = createSqliteStore({ path });
const model = anthropic(process.env["MODEL"] ?? "claude-opus-5"); // with the key in ANTHROPIC_API_KEY

// A message to a session runs a turn there, and its answer goes back to the session that sent it.
const tools = createSessionTools({
  store,
  async deliver({ ref, message, idempotencyKey, signal }) {
    const session = await sessions.open(ref.key);
    const turn = await session.runTurn(message.content, { idempotencyKey, signal });
    await session.close();
    return turn.text;
  },
});
const sessions = createSessions({ store, model, tools, system: "You may give parts of your task to sub-agents." });

const main = await sessions.open("agent:main:main");
const turn = await main.runTurn(task);
process.stdout.write(`${turn.text}\n\n`);

const query = { agentId: sessionRef({ key: main.ref.key }).agentId, keyPrefix: "agent:main:subagent:" };
for (const { ref, entry, messageCount } of (await store.list(query)).sessions)
  process.stdout.write(`${ref.key}  ${messageCount} messages  started by ${String(entry.spawnedBy)}\n`);
await sessions.close();
await store.close();
