// Mirrors one message, or with the word "entry" writes it into an entry, again after a failure, and says on stdout what came
// of each attempt, a line of JSON each. node test/mirror-flush-worker.ts <store> <path> [key], with the environment of the
// flush shim.
import process from "node:process";
import { systemClock, systemRandom } from "@throughline/core/internal";
import { createOpenclawSessions } from "@throughline/openclaw-compat";
import { isOnDisk } from "../../../tools/flush-shim.ts";
import { key, openStore, storePath, type StoreKind } from "./compat-fixture.ts";

const [kind = "", path = "", idempotencyKey] = process.argv.slice(2);
const say = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);
const text = "Delivered outside of a run";

try {
  await using store = openStore(kind as StoreKind, path);
  const sessions = createOpenclawSessions({
    store,
    stateDir: "/state",
    homeDir: "/home/u",
    clock: systemClock,
    random: systemRandom,
  });
  const params = { sessionKey: key, text, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) };
  for (let attempt = 1; attempt <= 3; attempt++) {
    try {
      const isEntry = idempotencyKey === "entry";
      if (isEntry)
        await sessions.updateSessionStore(storePath, (entries) => {
          entries[key] = { ...entries[key], sessionId: entries[key]?.sessionId ?? "", label: text };
        });
      const ok = isEntry || (await sessions.appendAssistantMessageToSessionTranscript(params)).ok;
      say({ is: ok ? "done" : "refused", isOnDisk: isOnDisk(process.env["FLUSH_DISK"] ?? "", text) });
    } catch (error) {
      say({ is: "thrown", code: (error as { readonly code?: string }).code ?? String(error) });
    }
  }
} catch (error) {
  say({ is: "stopped", code: (error as { readonly code?: string }).code ?? String(error) });
}
