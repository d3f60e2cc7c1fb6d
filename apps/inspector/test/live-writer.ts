import process from "node:process";
import { createInterface } from "node:readline";
import type { Clock } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

/**
 * Answers each line of its input in a session of a store, as a program of somebody else does: `PATH KEY WORD_DELAY_MS`.
 * The answer to a line that starts with `Hold` stops after some words, until the next line.
 */
const [path = "", key = "", delay = "0"] = process.argv.slice(2);
const heldWords = 5;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let wordsUntilHeld = Infinity;
const clock: Clock = {
  ...systemClock,
  async sleep(delayMs, signal) {
    wordsUntilHeld -= 1;
    if (wordsUntilHeld === 0) await lines.next();
    else await systemClock.sleep(delayMs, signal);
  },
};
const store = await createSqliteStore({ path });
const sessions = createSessions({ store, model: offline({ wordDelayMs: Number(delay), clock }) });
const session = await sessions.open(key);
process.stdout.write("ready\n");
for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
  wordsUntilHeld = line.value.startsWith("Hold") ? heldWords : Infinity;
  const { text } = await session.runTurn(line.value, { onDelta: () => undefined });
  process.stdout.write(`${JSON.stringify(text)}\n`);
}
await sessions.close();
await store.close();
