// One message to the Claude Agent SDK, in a session that outlives the SDK's own files.
// ANTHROPIC_API_KEY=… node --conditions=@throughline/source src/main.ts "What did I ask before?" [sessions.db]
import process from "node:process";
import { query } from "@anthropic-ai/claude-agent-sdk";
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { createSdkConversation } from "@throughline/adapter-claude-agent-sdk";
import { sessionRef } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";

const [prompt = "Hello.", path = "sessions.db"] = process.argv.slice(2);
const program = process.env["CLAUDE_CODE_PATH"];

const store = createSqliteStore({ path });
const queryOptions: Options = program === undefined ? {} : { pathToClaudeCodeExecutable: program, executable: "node" };
const conversation = createSdkConversation({
  store,
  ref: sessionRef({ key: "agent:main:main" }),
  query,
  queryOptions: { ...queryOptions },
});
const run = await conversation.send(prompt);
process.stdout.write(`${run.text}\n`);
process.stdout.write(`SDK session ${run.sdkSessionId}${run.isRecovered ? ", rebuilt from the store" : ""}\n`);
await store.close();
