// Takes the lock of an agent, prints a line, and keeps the lock until it is killed.
import process from "node:process";
import { createPostgresStore } from "@throughline/store-postgres";

const [place = "", namespace = "", agentId = "main", schema] = process.argv.slice(2);
const store = createPostgresStore({ url: place, ...(schema === undefined ? {} : { schema }), notify: false });
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
