import { join } from "node:path";
import pg from "pg";
import type { PayloadCodec, SessionEvent, SessionStore } from "@throughline/core";
import type { StoreUnderTest } from "@throughline/store-conformance";
import { startHolder } from "@throughline/store-conformance/internal";
import { createPostgresStore, type PostgresStoreOptions } from "@throughline/store-postgres";
import { createFaultyPool } from "./faulty-pool.ts";

let schemas = 0;

/** A name that no other test of the run takes. */
export function newSchema(): string {
  schemas += 1;
  return `t${process.pid}_${schemas}`;
}

/** A pool for looking at the database beside a store. */
export async function withClient<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Takes samples of the tables of one schema: those of all would change the plans that other tests look at. */
export async function analyzeSchema(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT c.oid::regclass::text AS name FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p')",
    [`"${schema}"`],
  );
  await client.query(`ANALYZE ${rows.map(({ name }) => name).join(", ")}`);
}

/** Everything the tables of a schema hold, as bytes. */
async function tableContents(client: pg.Client, schema: string): Promise<readonly Uint8Array[]> {
  const tables = await client.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 AND tablename !~ '_[0-9]+$'",
    [schema],
  );
  const found: Uint8Array[] = [];
  for (const { name } of tables.rows) {
    const rows = await client.query<Record<string, unknown>>(`SELECT * FROM "${schema}"."${name}"`);
    for (const row of rows.rows)
      for (const value of Object.values(row))
        found.push(
          value instanceof Buffer ? value : Buffer.from(typeof value === "string" ? value : JSON.stringify(value)),
        );
  }
  return found;
}

/** Making a schema takes longer than most tests: one that was used is emptied and used again. */
const usedSchemas = { plain: [] as string[], tenant: [] as string[] };
const pools = new Map<string, pg.Pool>();

function poolFor(url: string): pg.Pool {
  const known = pools.get(url);
  if (known !== undefined) return known;
  const pool = new pg.Pool({ connectionString: url, max: 6 });
  pool.on("error", () => undefined);
  pools.set(url, pool);
  return pool;
}

/** After the last test of a file. */
export async function endPools(): Promise<void> {
  await Promise.all([...pools.values()].map((pool) => pool.end()));
  pools.clear();
}

const nowFunction = (schema: string, aheadMs: number): string =>
  `CREATE OR REPLACE FUNCTION "${schema}".store_now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
   AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${aheadMs} $$;`;

async function emptySchema(pool: pg.Pool, schema: string): Promise<void> {
  const tables = await pool.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 AND tablename !~ '_[0-9]+$|^store_info$|^search_state$'",
    [schema],
  );
  // One by one, because Citus refuses to change a function in a transaction that changed rows on several nodes.
  for (const statement of [
    ...tables.rows.map(({ name }) => `DELETE FROM "${schema}"."${name}"`),
    `DELETE FROM "${schema}".store_info WHERE name = 'codec'`,
    `UPDATE "${schema}".search_state SET caught_up_slot = 0`,
    nowFunction(schema, 0),
  ])
    await pool.query(statement);
}

const holderScript = join(import.meta.dirname, "hold-agent-lock.ts");

interface UnderTestOptions extends Pick<PostgresStoreOptions, "notify" | "layout"> {
  /** Whether the store words its statements for a server that passes them on to others. A plain one takes them, too. */
  readonly isDistributed?: boolean;
}

/** A store in a schema of its own, and what the conformance kit may do to it. */
export async function openUnderTest(
  url: string,
  codec?: PayloadCodec,
  { isDistributed = false, ...more }: UnderTestOptions = {},
): Promise<StoreUnderTest> {
  const { layout = "plain" } = more;
  const schema = usedSchemas[layout].pop() ?? newSchema();
  const events: SessionEvent[] = [];
  const pool = poolFor(url);
  const faults = createFaultyPool(pool, isDistributed);
  let aheadMs = 0;
  const options: PostgresStoreOptions = {
    pool: faults.pool,
    schema,
    partitions: 2,
    ...more,
    onEvent: (event) => events.push(event),
    ...(codec === undefined ? {} : { codec }),
  };
  // Made by a server as it is: this one distributes nothing.
  if (isDistributed) {
    await using maker = createPostgresStore({
      pool,
      schema,
      partitions: 2,
      layout,
      ...(codec === undefined ? {} : { codec }),
    });
    await maker.list();
  }
  const opened: SessionStore[] = [];
  const open = (): SessionStore => {
    const store = createPostgresStore(options);
    opened.push(store);
    return store;
  };
  let current = open();
  const first = current;
  // Before a test asks for something that needs the schema: moving its clock.
  await first.list();
  return {
    store: first,
    reopen: async () => {
      await current.close();
      current = open();
      return current;
    },
    another: async () => open(),
    files: () => withClient(url, (client) => tableContents(client, schema)),
    events: () => events,
    advanceClock: (deltaMs) => {
      aheadMs += deltaMs;
      faults.before(nowFunction(schema, aheadMs));
    },
    failNextAppend: (outcome) => faults.failNextAppend(outcome),
    damageEntry: async ({ key }) => {
      const damage = codec === undefined ? "entry_values[1] = '{'" : "entry_coded = '\\x7b'";
      await pool.query(`UPDATE "${schema}".sessions SET ${damage} WHERE key = $1`, [key]);
    },
    holdElsewhere: ({ namespace, agentId }) =>
      startHolder({ scriptPath: holderScript, args: [url, namespace, agentId, schema] }),
    dispose: async () => {
      for (const store of opened) await store.close();
      await emptySchema(pool, schema);
      usedSchemas[layout].push(schema);
    },
  };
}
