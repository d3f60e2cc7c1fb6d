import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { refused } from "@throughline/core/store";
import type { RunStatement } from "./connection-pool.ts";
import { schemaSteps } from "./schema.ts";
import type { StoreScene } from "./store-scene.ts";

/** The tables that hold what cannot be made anew, in the order they are filled, and how many rows are fetched at a time. */
const tables: readonly (readonly [name: string, rows: number])[] = [
  ["agents", 1000],
  ["sessions", 200],
  ["records", 200],
  ["payloads", 1],
  ["keyed_appends", 1000],
  ["leases", 1000],
];

/**
 * The store as a script of SQL, of one moment, while others write: `psql -v ON_ERROR_STOP=1 -f` makes it again in an empty
 * database, under the same schema. The search index is not in it; it is made by the next search. Nothing that exists is
 * overwritten, and what broke off leaves no file.
 * @throws {ThroughlineError} EXPORT_EXISTS, STORE_IO, ABORTED
 */
export async function backupStore(
  scene: StoreScene,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly sizeBytes: number }> {
  if (existsSync(path)) throw refused("EXPORT_EXISTS", `${path} exists already.`, { path });
  const part = `${path}.part`;
  const file = opened(part);
  try {
    await scene.pool.snapshot(async (run) => {
      const write = (text: string): void => {
        signal?.throwIfAborted();
        writeSync(file, text);
      };
      await writeSchema(scene, run, write);
      for (const [table, rows] of tables) await writeTable(scene, run, write, table, rows);
      const [number] = await run(`SELECT last_value AS value FROM ${scene.schema}.session_numbers`);
      write(`SELECT setval('${scene.schema}.session_numbers', ${Number(number?.["value"])});\nCOMMIT;\n`);
    });
    fsyncSync(file);
    closeSync(file);
    renameSync(part, path);
    return { sizeBytes: statSync(path).size };
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

function opened(part: string): number {
  try {
    // Whatever an earlier try left is not to be mixed with this one; nobody else is to read it.
    return openSync(part, "wx", 0o600);
  } catch (cause) {
    throw refused("STORE_IO", `${part} cannot be made.`, { path: part }, cause);
  }
}

async function writeSchema({ schema }: StoreScene, run: RunStatement, write: (text: string) => void): Promise<void> {
  const [counted] = await run("SELECT count(*) AS partitions FROM pg_inherits WHERE inhparent = $1::regclass", [
    `${schema}.records`,
  ]);
  const info = await run(`SELECT quote_literal(name) AS name, quote_literal(value) AS value FROM ${schema}.store_info`);
  const values = new Map(info.map((row) => [String(row["name"]), String(row["value"])]));
  const version = Number(values.get("'version'")?.replaceAll("'", ""));
  write(
    `-- A store of Throughline. psql -v ON_ERROR_STOP=1 -f this file, in an empty database.\n` +
      `SET client_encoding = 'UTF8';\nSET standard_conforming_strings = on;\nSET check_function_bodies = off;\nBEGIN;\n` +
      `CREATE SCHEMA IF NOT EXISTS ${schema};\nCREATE TABLE ${schema}.store_info (name text PRIMARY KEY, value text NOT NULL);\n`,
  );
  for (const step of schemaSteps.filter((each) => each.version <= version))
    write(`${step.sql(schema, { partitions: Number(counted?.["partitions"]) })}\n`);
  for (const [name, value] of values) write(`INSERT INTO ${schema}.store_info VALUES (${name}, ${value});\n`);
}

/** Every column that is not made of others, as the server writes it. */
async function writeTable(
  { schema }: StoreScene,
  run: RunStatement,
  write: (text: string) => void,
  table: string,
  rows: number,
): Promise<void> {
  const columns = await run(
    `SELECT quote_ident(attname) AS name FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`,
    [`${schema}.${table}`],
  );
  const names = columns.map((row) => String(row["name"]));
  const values = names.map((name) => `quote_nullable(${name}::text)`);
  await run(
    `DECLARE backup NO SCROLL CURSOR FOR SELECT concat_ws(', ', ${values.join(", ")}) AS row FROM ${schema}.${table}`,
  );
  for (;;) {
    const fetched = await run(`FETCH ${rows} FROM backup`);
    if (fetched.length === 0) break;
    const texts = fetched.map((row) => `(${String(row["row"])})`);
    write(`INSERT INTO ${schema}.${table} (${names.join(", ")}) VALUES\n${texts.join(",\n")};\n`);
  }
  await run("CLOSE backup");
}
