// Forks a session by copying it, again after a failure, and says on stdout what came of each attempt, a line of JSON each.
// node test/flush-fork-worker.ts <store> <path>, with the environment of the flush shim.
import process from "node:process";
import { forkByCopy } from "@throughline/core/internal";
import { openStore } from "./process-store.ts";
import { key } from "./session-fixture.ts";

const [kind = "", path = ""] = process.argv.slice(2);
const say = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);

try {
  await using store = openStore(kind, path);
  const from = { store, ref: { namespace: "", agentId: "main", key } };
  const to = { store, ref: { namespace: "", agentId: "main", key: `${key}:fork` } };
  for (let attempt = 1; attempt <= 3; attempt++) {
    try {
      await forkByCopy(from, to, { sessionId: "forked" });
      say({ is: "done" });
      break;
    } catch (error) {
      say({ is: "thrown", code: (error as { readonly code?: string }).code ?? String(error) });
    }
  }
} catch (error) {
  say({ is: "stopped", code: (error as { readonly code?: string }).code ?? String(error) });
}
