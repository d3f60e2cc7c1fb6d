import pg from "pg";
import type { PostgresPool } from "@throughline/store-postgres";

/** Holds a statement of the store, and the ranges of tenants whose tables it asked for. */
interface AskedStatement {
  readonly text: string;
  readonly ranges: Set<string>;
}

interface ListeningPool extends AsyncDisposable {
  readonly pool: PostgresPool;
  readonly statements: readonly AskedStatement[];
}

/** Opens one connection to a coordinator of Citus, and notes which shards each statement asks. */
export async function listenToShards(url: string): Promise<ListeningPool> {
  const options = "-c citus.log_remote_commands=on -c client_min_messages=notice";
  const client = new pg.Client({ connectionString: url, options });
  await client.connect();
  const shards = await client.query<{ id: string; range: string | null }>(
    "SELECT shardid::text AS id, shardminvalue AS range FROM pg_catalog.pg_dist_shard",
  );
  const rangeOf = new Map(shards.rows.map(({ id, range }) => [id, range]));
  const statements: AskedStatement[] = [];
  client.on("notice", ({ message = "" }) => {
    for (const [, id = ""] of message.matchAll(/_(\d{6,})\b/g)) {
      const range = rangeOf.get(id);
      // A reference table has no range, and each node has all of it.
      if (message.startsWith("issuing") && typeof range === "string") statements.at(-1)?.ranges.add(range);
    }
  });
  return {
    statements,
    pool: {
      waitingCount: 0,
      connect: () =>
        Promise.resolve({
          on: client.on.bind(client),
          off: client.off.bind(client),
          query(given) {
            statements.push({ text: given.text, ranges: new Set() });
            return client.query(given);
          },
          release: () => undefined,
        }),
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}
