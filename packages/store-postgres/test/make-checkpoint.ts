// Makes a checkpoint of each of the sessions and says what became of it; stops at a place on the way, if one is named, and
// waits there to be killed.
import process from "node:process";
import { createCheckpointer } from "@throughline/checkpoint";
import { systemClock, systemRecordIds } from "@throughline/core/internal";
import { createPostgresStore, type PostgresPool } from "@throughline/store-postgres";
import type { PostgresConnection } from "../src/connection-pool.ts";
import pg from "pg";

const [url = "", schema = "", keysText = "", stopAt = "", aheadText = "0"] = process.argv.slice(2);
const aheadMs = Number(aheadText);

function say(message: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function stop(): Promise<never> {
  say({ reached: stopAt });
  setInterval(() => undefined, 1000);
  return new Promise(() => undefined);
}

const inner = new pg.Pool({ connectionString: url, max: 2 });
/** The driver's pool, which stops around the append of a checkpoint. */
const pool: PostgresPool = {
  get waitingCount() {
    return inner.waitingCount;
  },
  async connect(): Promise<PostgresConnection> {
    const client = await inner.connect();
    return {
      async query(query) {
        const isCheckpoint = JSON.stringify(query.values).includes("tokensAtCheckpoint");
        if (isCheckpoint && stopAt === "before its append") await stop();
        const answer = await client.query(query);
        if (isCheckpoint && stopAt === "before the answer") await stop();
        return answer;
      },
      release: (error) => client.release(error),
    };
  },
};

const store = createPostgresStore({ pool, schema, notify: false });
const checkpointer = createCheckpointer({
  store,
  clock: { nowMs: () => systemClock.nowMs() + aheadMs, sleep: (delayMs, signal) => systemClock.sleep(delayMs, signal) },
  ids: systemRecordIds,
  owner: `node ${process.pid}`,
  deadlineMs: 60_000,
  writers: [
    {
      name: "model",
      write: async () => {
        if (stopAt === "while it is written") await stop();
        return JSON.stringify({
          summary: "They settled on JSON Lines for the importer.",
          keyDecisions: ["JSON Lines"],
        });
      },
    },
  ],
});
for (const key of keysText.split(",")) {
  const made = await checkpointer.make({ namespace: "", agentId: "main", key }, 60_000);
  say({
    key,
    made: made.kind === "nothing" ? made.reason : made.kind,
    cause: "cause" in made ? String(made.cause) : null,
  });
}
await checkpointer.close();
await store.close();
await inner.end();
