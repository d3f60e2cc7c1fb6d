// An agent with tools whose arguments are typed by zod. A refund above the limit needs a person, and a crash refunds nothing twice.
// ANTHROPIC_API_KEY=… npm start -- "Refund order A7." [sessions.db]
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { defineTool } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";
import { z } from "zod";
import { createShop } from "./shop.ts";

const [question = "Which orders are open?", path = "sessions.db"] = process.argv.slice(2);
const refundLimit = 100;
const shop = createShop();

const findOrder = defineTool({
  name: "find_order",
  description: "The amount and the state of an order.",
  input: z.object({ id: z.string().regex(/^[A-Z][0-9]+$/, "such as A7") }),
  run: ({ id }) => shop.find(id), // what it throws is the result: the model reads it
});
const refund = defineTool({
  name: "refund",
  description: "Pays the amount of an order back.",
  input: z.object({ id: z.string(), amount: z.number().positive() }),
  // A call that a killed process left may have run, and the model may make it again: the shop pays an order back once a turn.
  run: ({ id, amount }, { turnId, callId }) => shop.refund(id, amount, turnId ?? callId),
});

/** Asks a person; without a terminal the answer is no. */
async function isAllowed(text: string): Promise<boolean> {
  if (!process.stdin.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`${text} [y/N] `);
  terminal.close();
  return answer.trim().toLowerCase() === "y";
}

const store = createSqliteStore({ path });
const sessions = createSessions({
  store,
  model: anthropic(process.env["MODEL"] ?? "claude-sonnet-5"),
  tools: [findOrder, refund],
  approveTool: async (call) => {
    const amount = Number(call.arguments["amount"] ?? 0);
    if (call.name !== "refund" || amount <= refundLimit || (await isAllowed(`Refund ${amount}?`))) return true;
    return { refuse: `A refund above ${refundLimit} needs the consent of a person, and was refused.` };
  },
});
try {
  const session = await sessions.open("shop");
  if (session.interruptedTurn !== null) await session.resume();
  const turn = await session.runTurn(question);
  process.stdout.write(`${turn.text}\n`);
} finally {
  await sessions.close();
  await store.close();
}
