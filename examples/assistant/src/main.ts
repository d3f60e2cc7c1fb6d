// An assistant that forgets nothing. Kill it at any moment, and start it again: it first answers what it was asked before.
// ANTHROPIC_API_KEY=… npm start -- "Tell me about harbors." [sessions.db]
import process from "node:process";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions, type Turn } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

const [question, path = "sessions.db"] = process.argv.slice(2);
const store = createSqliteStore({ path });
const sessions = createSessions({
  store,
  model: anthropic(process.env["MODEL"] ?? "claude-sonnet-5"),
  system: "You answer briefly.",
});
const session = await sessions.open("home");

const stopped = new AbortController();
process.once("SIGINT", () => stopped.abort()); // what was written of the answer is stored
const options = {
  signal: stopped.signal,
  onDelta: (delta: { readonly type: string; readonly text?: string }) => {
    if (delta.type === "text") process.stdout.write(delta.text ?? "");
  },
};
const end = ({ outcome }: Turn): void => {
  process.stdout.write(outcome === "done" ? "\n" : `\n[${outcome}]\n`);
};

try {
  if (session.interruptedTurn !== null) {
    process.stdout.write(`[resuming: ${session.interruptedTurn.text}]\n`);
    end(await session.resume(options));
  }
  if (question !== undefined && !stopped.signal.aborted) end(await session.runTurn(question, options));
} finally {
  await sessions.close();
  await store.close();
}
