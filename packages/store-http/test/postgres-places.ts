import process from "node:process";
import pg from "pg";
import type { ServedStore } from "./store-under-test.ts";

/** Schemas of one server, each emptied after its case and used again: making one takes longer than most cases. */
export interface PostgresPlaces {
  readonly make: () => Promise<ServedStore>;
  end(): Promise<void>;
}

export function createPostgresPlaces(url: string): PostgresPlaces {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on("error", () => undefined);
  const free: string[] = [];
  let made = 0;
  const newSchema = (): string => {
    made += 1;
    return `http${process.pid}_${made}`;
  };
  return {
    make: async () => {
      const schema = free.pop() ?? newSchema();
      let aheadMs = 0;
      return {
        place: { kind: "postgres", url, schema },
        outlivesKill: true,
        files: () => contentsOf(pool, schema),
        damageEntry: async ({ key }) => {
          await pool.query(`UPDATE "${schema}".sessions SET entry_values[1] = '{' WHERE key = $1`, [key]);
        },
        advanceClock: (deltaMs) => {
          aheadMs += deltaMs;
          return pool.query(clockOf(schema, aheadMs));
        },
        dispose: async () => {
          await emptySchema(pool, schema);
          free.push(schema);
        },
      };
    },
    end: () => pool.end(),
  };
}

const clockOf = (schema: string, aheadMs: number): string =>
  `CREATE OR REPLACE FUNCTION "${schema}".store_now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
   AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${aheadMs} $$;`;

async function emptySchema(pool: pg.Pool, schema: string): Promise<void> {
  const tables = await pool.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 AND tablename !~ '^records_|^store_info$|^search_state$'",
    [schema],
  );
  const deletes = tables.rows.map(({ name }) => `DELETE FROM "${schema}"."${name}";`);
  await pool.query(
    `${deletes.join("\n")} UPDATE "${schema}".search_state SET caught_up_slot = 0; ${clockOf(schema, 0)}`,
  );
}

async function contentsOf(pool: pg.Pool, schema: string): Promise<readonly Uint8Array[]> {
  const tables = await pool.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 AND tablename !~ '^records_'",
    [schema],
  );
  const found: Uint8Array[] = [];
  for (const { name } of tables.rows) {
    const rows = await pool.query<Record<string, unknown>>(`SELECT * FROM "${schema}"."${name}"`);
    for (const value of rows.rows.flatMap((row) => Object.values(row)))
      found.push(
        value instanceof Buffer ? value : Buffer.from(typeof value === "string" ? value : JSON.stringify(value)),
      );
  }
  return found;
}
