// A question to an agent with a tool, in a session that another process continues: also after this one died in the middle.
// node --conditions=@throughline/source src/main.ts "Charge my card." [sessions.db] [--die]
import process from "node:process";
import { Agent, type AgentInputItem, type Model, Runner, tool } from "@openai/agents-core";
import { assistantMessage, functionCall, ScriptedModel } from "@openai/agents-core/testing";
import { createAgentsSession, recordRun } from "@throughline/adapter-openai-agents";
import { createSqliteStore } from "@throughline/store-sqlite";

const [question = "Charge my card.", path = "sessions.db", option] = process.argv.slice(2);

const store = createSqliteStore({ path });
const session = createAgentsSession({ store, sessionId: "customer-7" });
const before = await session.getItems();

const charge = tool({
  name: "charge",
  description: "Charges 5 EUR.",
  parameters: { type: "object", properties: {}, required: [], additionalProperties: true },
  strict: false,
  execute: () => "charged 5 EUR",
});
const agent = new Agent({
  name: "cashier",
  instructions: "You charge cards, once.",
  model: model(before),
  tools: [charge],
});

// The lease is how long a session stays closed to others after a process died.
const runner = recordRun(new Runner({ tracingDisabled: true }), session, { leaseMs: 1000 });
const { finalOutput } = await runner.run(agent, question);
process.stdout.write(`${finalOutput}\n${(await session.getItems()).length} items are stored.\n`);
await store.close();

/** A model without a key, which says whether the card was charged before. Leave it out, or name a real one. */
function model(history: readonly AgentInputItem[]): Model {
  const wasCharged = history.some((item) => item.type === "function_call_result");
  if (wasCharged) return new ScriptedModel([[assistantMessage("Your card was charged already.")]]);
  const answer = { type: "responder" as const, respond: () => [assistantMessage("I charged 5 EUR.")] };
  const die = { type: "responder" as const, respond: () => (process.kill(process.pid, "SIGKILL"), []) };
  return new ScriptedModel([[functionCall("charge", {}, { callId: "call_1" })], option === "--die" ? die : answer]);
}
