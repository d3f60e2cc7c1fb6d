// Takes the lock of an agent, prints a line, and keeps the lock until it is killed.
import process from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";

const [place = "", namespace = "", agentId = "main"] = process.argv.slice(2);
const store = createSqliteStore({ path: place });
await store.exclusively?.(
  { namespace, agentId },
  () => {
    process.stdout.write("held\n");
    // Nothing can settle this promise, so that a collector may take it and all that waits for it.
    setInterval(() => Reflect.get(globalThis, "gc")?.(), 100);
    return new Promise<never>(() => undefined);
  },
  { timeoutMs: 10_000, pollIntervalMs: 10 },
);
