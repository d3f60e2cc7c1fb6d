import { closeSync, existsSync, fstatSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { ThroughlineError } from "@throughline/core";
import { abortedBefore, refused } from "@throughline/core/internal";
import type { RunStatement } from "./connection-pool.ts";
import { columnsOf } from "./copy-rows.ts";
import { readSecurity, rowSecurity } from "./row-security.ts";
import { schemaSteps } from "./schema.ts";
import { ownNamesOnly } from "./statement-settings.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Lists the tables that cannot be rebuilt, in the order of insertion. The number limits the rows of one fetch, because
 * a payload may be large.
 */
const tables: readonly (readonly [name: string, rows: number])[] = [
  ["agents", 1000],
  ["sessions", 200],
  ["records", 200],
  ["payloads", 1],
  ["keyed_appends", 1000],
  ["purged_sources", 1000],
  ["files", 1000],
  ["file_chunks", 8],
  ["file_references", 1000],
];

/**
 * Writes the store as a script of SQL that shows one moment, while programs write. `psql -v ON_ERROR_STOP=1 -f`
 * restores it into an empty database, under the same schema name. The script lacks the search index, which the next
 * search rebuilds. The backup overwrites no file, and a failed backup leaves none. A killed process leaves a part file,
 * which the next backup reports.
 * @throws {ThroughlineError} EXPORT_EXISTS, STORE_UNSUPPORTED, STORE_IO, STORE_FULL, ABORTED, and STORE_READ_ONLY for a
 * role that row security limits
 */
export async function backupStore(
  context: StoreContext,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly sizeBytes: number }> {
  if (context.found.isDistributed)
    throw new ThroughlineError("STORE_UNSUPPORTED", "Citus gives no snapshot over all of its nodes.", {
      outcome: "not-applied",
      details: { path },
      remedy: "Take base backups of every node with one restore point, as docs/guides/scale-postgres.md says.",
    });
  if (existsSync(path)) throw refused("EXPORT_EXISTS", `${path} exists already.`, { path });
  const part = openPart(path);
  try {
    await context.pool.snapshot(async (run) => {
      // The server then refuses a role that sees only a part of the sessions, because its backup would miss the rest.
      await run("SET LOCAL row_security = off");
      const write = (text: string): void => {
        if (signal?.aborted === true) throw abortedBefore("the backup was done", signal);
        part.write(text);
      };
      const isSecured = await writeSchema(context, run, write);
      // The roles of the tenant layout belong to the server, and a backup of a database does not contain them.
      const secured = isSecured && context.found.layout.name === "plain" ? [["agent_roles", 1000] as const] : [];
      for (const [table, rows] of [...tables, ...secured]) await writeTable(context, run, write, table, rows);
      const [number] = await run(`SELECT last_value AS value FROM ${context.schema}.session_numbers`);
      write(`SELECT setval('${context.schema}.session_numbers', ${String(number?.["value"])});\nCOMMIT;\n`);
    }, signal);
    return { sizeBytes: part.finish() };
  } catch (error) {
    part.discard();
    throw error;
  }
}

interface PartFile {
  /** Writes the whole text, because the system may accept only a part of it at a time. */
  write(text: string): void;
  /** Flushes the file, renames it to its final name, and returns its size. */
  finish(): number;
  discard(): void;
}

/**
 * These errors concern the disk of this machine, not the disk of the server.
 * @throws {ThroughlineError} STORE_IO, STORE_FULL
 */
function openPart(path: string): PartFile {
  const part = `${path}.part`;
  // The part file of an earlier attempt must not be mixed with this one. Mode 0600 keeps the file from other users.
  if (existsSync(part))
    throw new ThroughlineError(
      "EXPORT_EXISTS",
      `A backup to ${path} is under way, or was broken off: ${part} exists.`,
      {
        outcome: "not-applied",
        details: { path: part },
        remedy: `Remove ${part} unless somebody is at it, or choose another name.`,
      },
    );
  const file = onDisk(part, () => openSync(part, "wx", 0o600));
  return {
    write(text) {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length;) at += onDisk(part, () => writeSync(file, bytes, at));
    },
    finish: () =>
      onDisk(part, () => {
        fsyncSync(file);
        renameSync(part, path);
        const { size } = fstatSync(file);
        closeSync(file);
        return size;
      }),
    discard() {
      closeSync(file);
      rmSync(part, { force: true });
    },
  };
}

function onDisk<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const isFull = code === "ENOSPC" || code === "EDQUOT";
    throw refused(isFull ? "STORE_FULL" : "STORE_IO", `${path} cannot be written: ${message}`, { path }, cause);
  }
}

/**
 * Returns whether row security is on. The copy must have it too, because it would otherwise show every row to every
 * role.
 */
async function writeSchema(
  { schema, found }: StoreContext,
  run: RunStatement,
  write: (text: string) => void,
): Promise<boolean> {
  const [counted] = await run("SELECT count(*) AS partitions FROM pg_inherits WHERE inhparent = $1::regclass", [
    `${schema}.records`,
  ]);
  const info = await run(`SELECT quote_literal(name) AS name, quote_literal(value) AS value FROM ${schema}.store_info`);
  const values = new Map(info.map((row) => [String(row["name"]), String(row["value"])]));
  const version = Number(values.get("'version'")?.replaceAll("'", ""));
  write(
    `-- A store of Throughline. psql -v ON_ERROR_STOP=1 -f this file, in an empty database.\n` +
      `SET client_encoding = 'UTF8';\nSET standard_conforming_strings = on;\nSET check_function_bodies = off;\nBEGIN;\n${ownNamesOnly};\n` +
      `CREATE SCHEMA IF NOT EXISTS ${schema};\nCREATE TABLE ${schema}.store_info (name text PRIMARY KEY, value text NOT NULL);\n`,
  );
  for (const step of schemaSteps(found.layout.name).filter((each) => each.version <= version))
    write(`${step.sql(schema, { partitions: Number(counted?.["partitions"]) })}\n`);
  const { isSecured } = await readSecurity(schema, found.layout.name, run);
  if (isSecured) write(`${rowSecurity(schema, found.layout.name)}\n`);
  for (const [name, value] of values) write(`INSERT INTO ${schema}.store_info VALUES (${name}, ${value});\n`);
  return isSecured;
}

/** Generated columns are left out, because the server refuses values for them. */
async function writeTable(
  { schema }: StoreContext,
  run: RunStatement,
  write: (text: string) => void,
  table: string,
  rows: number,
): Promise<void> {
  const names = (await columnsOf(run, `${schema}.${table}`)).map(({ name }) => name);
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
