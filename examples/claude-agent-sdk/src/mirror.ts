// One message to the Claude Agent SDK, whose transcripts lie in a store: another machine resumes them.
// ANTHROPIC_API_KEY=… node --conditions=@throughline/source src/mirror.ts "What did I ask before?" [sessions.db] [session id]
import process from "node:process";
import { query } from "@anthropic-ai/claude-agent-sdk";
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { createClaudeSessionStore } from "@throughline/adapter-claude-agent-sdk";
import { createSqliteStore } from "@throughline/store-sqlite";

const [prompt = "Hello.", path = "sessions.db", resume] = process.argv.slice(2);
const program = process.env["CLAUDE_CODE_PATH"];

const store = createSqliteStore({ path });
const options: Options = {
  sessionStore: createClaudeSessionStore({ store }),
  sessionStoreFlush: "eager",
  ...(resume === undefined ? {} : { resume }),
  ...(program === undefined ? {} : { pathToClaudeCodeExecutable: program, executable: "node" }),
};
for await (const message of query({ prompt, options })) {
  if (message.type === "system" && message.subtype === "mirror_error")
    process.stderr.write(`${JSON.stringify(message)}\n`);
  if (message.type === "result")
    process.stdout.write(`${"result" in message ? message.result : message.subtype}\nresume ${message.session_id}\n`);
}
await store.close();
