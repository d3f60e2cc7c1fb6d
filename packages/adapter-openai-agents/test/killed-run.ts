// A run that is killed after its tool ran and before the model is asked again: with a bare session, then recorded.
import { Agent } from "@openai/agents-core";
import { ScriptedModel } from "@openai/agents-core/testing";
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createAgentsSession } from "../src/agents-session.ts";
import { recordRun } from "../src/record-run.ts";
import { call, chargeTool, runner } from "./scripted.ts";

const store = createSqliteStore({ path: process.argv[2] as string });
const ended = Promise.withResolvers<never>();

function agentThat(second: () => never | Promise<never>): Agent {
  const model = new ScriptedModel([[call], { type: "responder", respond: second }]);
  return new Agent({ name: "cashier", model, tools: [chargeTool()] });
}

const bare = createAgentsSession({ store, sessionId: "bare" });
const reached = Promise.withResolvers<void>();
const waiting = agentThat(() => {
  reached.resolve();
  return ended.promise;
});
void runner.run(waiting, "pay", { session: bare });
await reached.promise;

const session = createAgentsSession({ store, sessionId: "recorded" });
const killed = agentThat(() => {
  process.kill(process.pid, "SIGKILL");
  return ended.promise;
});
await recordRun(runner, session, { leaseMs: 300 }).run(killed, "pay", { session });
