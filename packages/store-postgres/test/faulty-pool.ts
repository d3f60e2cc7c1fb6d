import type pg from "pg";
import type { WriteOutcome } from "@throughline/core/internal";
import type { PostgresConnection } from "../src/connection-pool.ts";
import type { PostgresPool } from "@throughline/store-postgres";

/** A pool whose next append fails, before it is sent or after it was carried out. */
export interface FaultyPool {
  readonly pool: PostgresPool;
  failNextAppend(outcome: WriteOutcome): void;
  /** Runs a statement before the next one. */
  before(sql: string): void;
}

/** What a server with Citus says to what the store asks when it is opened. */
function answered(text: string): string {
  if (text.includes("pg_dist_partition")) return "SELECT true AS is_distributed, '{}'::text[] AS missing";
  return text.replace(
    "EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'citus')",
    "true",
  );
}

/** `isDistributed`: it answers that the database has the extension of Citus. */
export function createFaultyPool(inner: pg.Pool, isDistributed = false): FaultyPool {
  let failing: WriteOutcome | null = null;
  let waiting: string[] = [];
  const failure = (): Error => Object.assign(new Error("the connection was cut"), { code: "ECONNRESET" });
  const wrap = (client: pg.PoolClient): PostgresConnection => ({
    // For watchers: without it they would only look by themselves.
    on: client.on.bind(client),
    off: client.off.bind(client),
    async query(given) {
      const query = isDistributed ? { ...given, text: answered(given.text) } : given;
      for (const sql of waiting.splice(0)) await client.query(sql);
      const isAppend = query.text.includes("append_1(");
      if (!isAppend || failing === null) return client.query(query);
      if (failing === "not-applied") {
        failing = null;
        // An answer of the server: it refuses, and has undone what it began.
        const { values } = query;
        return client.query({
          values,
          text: query.text.replace(" AS answer", ", 1 / (random() * 0)::int AS answer"),
        });
      }
      // A pooler may refuse it for a name it does not know; then it is the next try that fails.
      await client.query(query);
      failing = null;
      throw failure();
    },
    release: (error) => client.release(error),
  });
  return {
    pool: {
      get waitingCount() {
        return inner.waitingCount;
      },
      connect: async () => wrap(await inner.connect()),
    },
    failNextAppend: (outcome) => {
      failing = outcome;
    },
    before: (sql) => {
      waiting = [...waiting, sql];
    },
  };
}
