import type { PostgresConnection } from "../src/connection-pool.ts";
import type { PostgresPool } from "@throughline/store-postgres";
import type pg from "pg";
import { withClient } from "./store-under-test.ts";

/** A pool whose n-th statement, of those that count, finds its connection ended by the server: before it is sent, or while it runs. */
export function endingPool(
  url: string,
  inner: pg.Pool,
  phase: "before" | "during",
  counts: (statement: string) => boolean = () => true,
): { readonly pool: PostgresPool; at: number; sent: number } {
  const counted = { at: 0, sent: 0 };
  const terminate = (client: pg.PoolClient): Promise<unknown> =>
    withClient(url, (other) =>
      other.query("SELECT pg_terminate_backend($1, 5000)", [Reflect.get(client, "processID")]),
    );
  return Object.assign(counted, {
    pool: {
      get waitingCount() {
        return inner.waitingCount;
      },
      async connect(): Promise<PostgresConnection> {
        const client = await inner.connect();
        return {
          on: client.on.bind(client),
          off: client.off.bind(client),
          async query(query) {
            if (!counts(typeof query === "string" ? query : query.text)) return client.query(query);
            counted.sent += 1;
            if (counted.sent !== counted.at) return client.query(query);
            if (phase === "before") await terminate(client);
            const answer = client.query(query);
            if (phase === "during") await Promise.all([terminate(client), answer.catch(() => undefined)]);
            return answer;
          },
          release: (error) => client.release(error),
        };
      },
    } satisfies PostgresPool,
  });
}
