// A process whose turn waits for an answer: the model calls a tool twice, and nobody allows more than the first call.
// node test/question-process.ts <store> <path> <how many calls are allowed>
import { flushCompileCache } from "node:module";
import process from "node:process";
import { createSessions } from "@throughline/session";
import { openStore } from "./process-store.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { key } from "./session-fixture.ts";

// A process that is killed does not keep what it compiled by itself.
flushCompileCache();
const [kind = "", path = "", allowed = "0"] = process.argv.slice(2);
const calls = ["A", "B"].map((order) => ({ id: `call-${order}`, name: "refund", arguments: { order } }));
let asked = 0;
const ran = Promise.withResolvers<void>();
if (allowed === "0") ran.resolve();
await using sessions = createSessions({
  store: openStore(kind, path),
  model: { chat: createScriptedModel({ calls }), modelId: "claude-sonnet-4-5", windowTokens: 100_000 },
  tools: [
    {
      definition: { name: "refund", description: "Pays back.", inputSchema: { type: "object" } },
      run: () => {
        ran.resolve();
        return Promise.resolve("paid");
      },
    },
  ],
  approveTool: async () => {
    asked += 1;
    if (asked <= Number(allowed)) return true;
    await ran.promise;
    process.stdout.write("asked\n");
    return new Promise(() => setTimeout(() => {}, 600_000));
  },
});
await using session = await sessions.open(key);
await session.runTurn("Pay both back");
