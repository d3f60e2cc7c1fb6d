// A program with a loop of its own around OpenAI's SDK. Whenever it is killed, run it again with the same message id: it
// resumes where it was.
// OPENAI_API_KEY=… node --conditions=@throughline/source src/main.ts "What is in notes.txt?" [message id] [sessions.db]
import process from "node:process";
import OpenAI from "openai";
import { toolCalls, toolResult, userMessage } from "@throughline/core";
import { createHistory } from "@throughline/history";
import { recordFromReply } from "@throughline/history/openai";
import { openTurn } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { createTokenEstimator } from "@throughline/tokens";
import { runTool, tools } from "./tools.ts";

const [question = "What is in notes.txt?", messageId, path = "sessions.db"] = process.argv.slice(2);
const model = process.env["MODEL"] ?? "gpt-5";
const maxTokens = Number(process.env["WINDOW_TOKENS"] ?? 150_000);
const client = new OpenAI();

await using store = createSqliteStore({ path });
await using turn = await openTurn(store, "home", { drafts: [userMessage(question)], idempotencyKey: messageId });
const counter = await createTokenEstimator().counterFor({ provider: "openai", modelId: model });
const history = createHistory("openai", { limit: { maxTokens, countTokens: counter.countMessage } });
history.append(turn.records);
while (!turn.isClosed) {
  const request = { model, tools, messages: history.render().messages };
  const reply = recordFromReply(await client.chat.completions.create(request, { signal: turn.signal }), { model });
  const calls = toolCalls(reply);
  if (calls.length === 0) {
    history.append(await turn.close([reply]));
  } else {
    history.append(await turn.append([reply]));
    const results = calls.map(async (call) => toolResult(call, await runTool(call)));
    history.append(await turn.append(await Promise.all(results)));
  }
}

for (const block of history.context().messages.at(-1)?.content ?? [])
  if (block.type === "text") process.stdout.write(`${block.text}\n`);
