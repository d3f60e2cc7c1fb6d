// A program whose tool needs approvals. It takes turns, lists what waits, decides at random and resumes, until it is killed.
// node approving-program.ts <store> <place> <token> <session> <file of effects> <ask | ask-briefly | approve | approve-together | loop | drain>
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { ChatModel, SessionStore } from "@throughline/core";
import { createSessions, type Session } from "@throughline/session";
import { openHttpStore } from "@throughline/store-http";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createPostgresStore } from "@throughline/store-postgres";
import { createSqliteStore } from "@throughline/store-sqlite";

// A process that is killed does not keep what it compiled by itself.
flushCompileCache();
const [kind = "", place = "", token = "", name = "", effects = "", mode = ""] = process.argv.slice(2);
const say = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);

async function openStore(): Promise<SessionStore> {
  if (kind === "sqlite") return createSqliteStore({ path: join(place, "sessions.db") });
  if (kind === "jsonl") return createJsonlStore({ root: place });
  if (kind === "postgres") return createPostgresStore({ url: place });
  return openHttpStore({ url: place, token });
}

/** Calls the tool three times after each message of a user, and answers the results. */
const chat: ChatModel = {
  provider: "anthropic",
  api: "anthropic",
  chat: ({ messages }) => {
    const { content } = messages.at(-1) as { readonly content: unknown };
    const isAnswer = JSON.stringify(content).includes("tool_result");
    const calls = Array.from({ length: 3 }, () => ({
      type: "toolCall" as const,
      id: `call-${randomUUID()}`,
      name: "pay",
      arguments: {},
    }));
    const usage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 };
    const message = {
      role: "assistant" as const,
      content: isAnswer ? [{ type: "text" as const, text: "Paid." }] : calls,
      api: "anthropic-messages",
      provider: "anthropic",
      model: "claude-sonnet-4-5",
      usage,
      stopReason: isAnswer ? "stop" : "toolUse",
    };
    return Promise.resolve({ message, stopReason: message.stopReason, usage });
  },
};

const store = await openStore();
const sessions = createSessions({
  store,
  model: { chat, modelId: "claude-sonnet-4-5", windowTokens: 100_000 },
  tools: [
    {
      definition: { name: "pay", description: "Pays.", inputSchema: { type: "object" } },
      run: async (_args, { callId }) => {
        appendFileSync(effects, `${callId}\n`);
        await sleep(randomInt(4));
        return "paid";
      },
    },
  ],
  onEvent: ({ name: event }) => mode === "loop" && say({ is: event }),
  approvals: "parallel",
  approveTool: async () => {
    if (mode === "ask") {
      say({ is: "asked" });
      await new Promise(() => setTimeout(() => {}, 600_000));
    }
    if (mode === "ask-briefly") return { wait: {}, expiresAtMs: Date.now() + 300 };
    await sleep(randomInt(4));
    const die = randomInt(4);
    return die < 2 ? { wait: { die } } : die === 2 ? true : { refuse: "Not today." };
  },
});

/** Decides on one call or on all, now and then with a refusal. */
async function decide(session: Session): Promise<void> {
  const { pendingApprovals: pending } = session;
  const chosen = randomInt(2) === 0 ? pending : pending.slice(0, 1);
  const answer = (): true | { refuse: string } => (randomInt(4) > 0 ? true : { refuse: "No." });
  await session.resume({ approvals: Object.fromEntries(chosen.map(({ callId }) => [callId, answer()])) });
}

const session = await sessions.open(name);
say({ is: "open", pending: session.pendingApprovals.map(({ callId }) => callId) });
if (mode === "ask" || mode === "ask-briefly") await session.runTurn("Pay");
// The test decides when, so that two processes can open the session before either of them decides.
if (mode === "approve-together") await once(process.stdin, "data");
if (mode === "approve" || mode === "approve-together") {
  const approvals = Object.fromEntries(session.pendingApprovals.map(({ callId }) => [callId, true as const]));
  try {
    say({ is: "done", outcome: (await session.resume({ approvals })).outcome });
  } catch (error) {
    say({ is: "refused", code: (error as { readonly code?: string }).code ?? String(error) });
  }
}
while (mode === "loop" || mode === "drain") {
  if (session.pendingApprovals.length > 0) await decide(session);
  else if (session.interruptedTurn !== null) await session.resume();
  else if (mode === "loop") await session.runTurn("Pay");
  else break;
}
say({ is: "end" });
await sessions.close();
await store.close();
