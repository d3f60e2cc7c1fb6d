// Asks whether a tool may run, says so on stdout, and waits for an answer for ever:
// node asking-program.ts SESSIONS.db KEY
import { writeSync } from "node:fs";
import process from "node:process";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

const [path = "", key = ""] = process.argv.slice(2);
const sessions = createSessions({
  store: createSqliteStore({ path }),
  model: anthropic("claude-sonnet-5"),
  tools: [
    {
      definition: { name: "refund", description: "Pays an order back.", inputSchema: { type: "object" } },
      run: () => {
        throw new Error("Nobody allowed it.");
      },
    },
  ],
  approveTool: () => {
    writeSync(1, "asked\n");
    return new Promise(() => {});
  },
});
setInterval(() => {}, 1000);
await (await sessions.open(key)).runTurn("Pay it back.");
