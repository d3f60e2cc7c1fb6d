// A process of its own that takes two turns, the first with a tool, and says on stdout what happens, a line of JSON each.
// node test/flush-worker.ts <store> <path>, with the environment of the flush shim.
import process from "node:process";
import { createSessions } from "@throughline/session";
import { isOnDisk } from "../../../tools/flush-shim.ts";
import { openStore } from "./process-store.ts";
import { createScriptedModel, type ScriptedReply } from "./scripted-model.ts";
import { echoTool, key, modelId } from "./session-fixture.ts";

const [kind = "", path = ""] = process.argv.slice(2);
const say = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);
let asking = "";
const asked = (reply: ScriptedReply) => (): ScriptedReply => {
  say({ is: "asked", isOnDisk: isOnDisk(process.env["FLUSH_DISK"] ?? "", asking) });
  return reply;
};
const model = createScriptedModel(
  asked({ calls: [{ id: "c1", name: "echo", arguments: { text: "tool one" } }] }),
  asked({ text: "answer one" }),
  asked({ text: "answer two" }),
  asked({ text: "answer three" }),
);
try {
  await using store = openStore(kind, path);
  await using sessions = createSessions({
    store,
    model: { chat: model, modelId, windowTokens: 100_000 },
    tools: [echoTool],
  });
  await using session = await sessions.open(key);
  for (const text of ["question one", "question two"]) {
    asking = text;
    try {
      const turn = await session.runTurn(text);
      say({ is: "done", outcome: turn.outcome, text: turn.text });
    } catch (error) {
      const { code = "none", outcome = null } = error as { readonly code?: string; readonly outcome?: string | null };
      say({ is: "thrown", code, outcome });
    }
  }
  say({ is: "end" });
} catch (error) {
  say({ is: "stopped", code: (error as { readonly code?: string }).code ?? String(error) });
}
