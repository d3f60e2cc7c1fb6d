// A process of its own that streams an answer and says on stdout how many characters were shown, and when. It says how
// late its timers are, too: a busy machine delays what it writes.
// node test/stream-process.ts <store> <path> <provider> <simulator url> <text> [leaseMs]
import { flushCompileCache } from "node:module";
import { writeSync } from "node:fs";
import process from "node:process";
import type { ProviderSimulator } from "@throughline/testing";
import { createSessions } from "@throughline/session";
import { openStore } from "./process-store.ts";
import { providerCases } from "./provider-cases.ts";
import { key } from "./session-fixture.ts";

// A process that is killed does not keep what it compiled by itself.
flushCompileCache();
const [kind = "", path = "", provider = "", url = "", text = "", leaseMs = "30000"] = process.argv.slice(2);
const found = providerCases.find(({ name }) => name === provider);
if (found === undefined) throw new Error(`There is no provider ${provider}.`);
const said = (line: object): void => void writeSync(1, `${JSON.stringify({ atMs: Date.now(), ...line })}\n`);
await using store = openStore(kind, path);
const { partials } = store;
if (partials === undefined) throw new Error(`The store ${kind} keeps no partials.`);
const write = partials.write.bind(partials);
/** A write of the open reply says when it began and when the store acknowledged it. */
partials.write = async (ref, partial) => {
  said({ writing: partial.text.length });
  await write(ref, partial);
  said({ written: partial.text.length });
};
await using sessions = createSessions({
  store,
  model: { chat: found.create({ url } as ProviderSimulator), modelId: found.modelId, windowTokens: 100_000 },
  leaseMs: Number(leaseMs),
});
await using session = await sessions.open(key);
let shown = "";
let lateMs = 0;
let tickedAtMs = Date.now();
setInterval(() => {
  lateMs = Math.max(lateMs, Date.now() - tickedAtMs - 10);
  tickedAtMs = Date.now();
}, 10).unref();
await session.runTurn(text, {
  whenBusy: "queue",
  onDelta: (delta) => {
    if (delta.type !== "text") return;
    shown += delta.text;
    // Written at once: a kill must not lose what was shown before it.
    said({ characters: shown.length, lateMs });
  },
});
said({ characters: shown.length, isDone: true });
