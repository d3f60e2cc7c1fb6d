// A process of its own that takes turns and says on stdout what happens, a line of JSON each.
// node test/turn-process.ts <store> <path> <provider> <simulator url> <text> [leaseMs] [turns, which then wait in line]
import { flushCompileCache } from "node:module";
import process from "node:process";
import type { ProviderSimulator } from "@throughline/testing";
import { createSessions } from "@throughline/session";
import { openStore } from "./process-store.ts";
import { providerCases } from "./provider-cases.ts";
import { key } from "./session-fixture.ts";

// A process that is killed does not keep what it compiled by itself.
flushCompileCache();
const [kind = "", path = "", provider = "", url = "", text = "", leaseMs = "30000", turns = "1"] =
  process.argv.slice(2);
const say = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);
const found = providerCases.find(({ name }) => name === provider);
if (found === undefined) throw new Error(`There is no provider ${provider}.`);
await using store = openStore(kind, path);
await using sessions = createSessions({
  store,
  model: { chat: found.create({ url } as ProviderSimulator), modelId: found.modelId, windowTokens: 100_000 },
  system: "You work with tools.",
  tools: [
    {
      definition: { name: "work", description: "Works for ever.", inputSchema: { type: "object" } },
      run: () => {
        say({ is: "working" });
        return new Promise<string>((resolve) => setTimeout(() => resolve("done at last"), 60_000));
      },
    },
  ],
  leaseMs: Number(leaseMs),
});
await using session = await sessions.open(key);
say({ is: "open", interrupted: session.interruptedTurn });
try {
  const waits = turns === "1" ? {} : { whenBusy: "queue" as const };
  for (let at = 0; at < Number(turns); at++) {
    const turn = await session.runTurn(text, { ...waits, onDelta: () => say({ is: "delta" }) });
    say({ is: "done", text: turn.text });
  }
} catch (error) {
  say({ is: "thrown", code: (error as { readonly code?: string }).code ?? String(error) });
}
