// A question to an agent of the ADK, in a session that the next process continues.
// node main.mjs "What time is it?" [sessions.db]
import process from "node:process";
import { BaseLlm, BaseSessionService, FunctionTool, LlmAgent, Runner } from "@google/adk";
import { createAdkSessionService } from "@throughline/adapter-adk";
import { createSqliteStore } from "@throughline/store-sqlite";

const [question = "What time is it?", path = "sessions.db"] = process.argv.slice(2);

/** A model without a key, which says how much of the conversation it was sent. Put the name of a real one in its place. */
class ScriptedModel extends BaseLlm {
  async *generateContentAsync({ contents }) {
    const isAnswered = contents.at(-1).parts.some(({ functionResponse }) => functionResponse);
    const call = { functionCall: { name: "clock", args: {} } };
    const part = isAnswered ? { text: `It is nine. I was sent ${contents.length} contents.` } : call;
    yield { content: { role: "model", parts: [part] } };
  }
}

const store = createSqliteStore({ path });
const sessionService = createAdkSessionService(BaseSessionService, { store });
const clock = new FunctionTool({ name: "clock", description: "The time.", execute: () => ({ time: "9:00" }) });
const agent = new LlmAgent({ name: "teller", model: new ScriptedModel({ model: "scripted" }), tools: [clock] });
const runner = new Runner({ appName: "clocks", agent, sessionService });

const key = { appName: "clocks", userId: "ann", sessionId: "s1" };
await sessionService.getOrCreateSession(key);
const newMessage = { role: "user", parts: [{ text: question }] };
for await (const { content } of runner.runAsync({ ...key, newMessage }))
  for (const { text } of content?.parts ?? []) if (text) process.stdout.write(`${text}\n`);
process.stdout.write(`${(await sessionService.getSession(key)).events.length} events are stored.\n`);
await store.close();
