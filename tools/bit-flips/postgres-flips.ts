import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { refused } from "../../packages/core/src/refused.ts";
import type { SessionEvent, SessionRef, SessionStore } from "../../packages/core/src/index.ts";
import { createPostgresStore } from "../../packages/store-postgres/src/index.ts";
import { startPostgres } from "../../packages/store-postgres/test/postgres-server.ts";
import { repositoryRoot } from "../find-files.ts";
import { compareReads, type Expected, expectedOf, type Work } from "./compare-reads.ts";
import { fileIdsOf } from "./facet-reads.ts";
import { fillStore } from "./fill-store.ts";
import type { FlipRegion } from "./flipped-store.ts";

/** What the operations gave while one bit was changed. */
export interface PostgresFlip {
  readonly flip: number;
  readonly name: string;
  readonly right: number;
  readonly errors: number;
  readonly wrong: readonly string[];
  /** How often each error code came. */
  readonly codes: Readonly<Record<string, number>>;
  /** Whether the byte is in a page that holds something. */
  readonly isInUse: boolean;
}

export interface PostgresFlipOptions {
  readonly flips: number;
  /** The byte and the bit of a flip. */
  readonly draw: (
    regions: readonly FlipRegion[],
    flip: number,
  ) => FlipRegion & { readonly at: number; readonly bit: number };
  readonly note: (flip: PostgresFlip) => void;
}

const pageBytes = 8192;
const headerBytes = 24;
/** The place in the header of a page that says where its free space begins. */
const freeSpaceAt = 12;

interface Client {
  connect(): Promise<void>;
  query(sql: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
  end(): Promise<void>;
}

interface Relation {
  readonly file: string;
  /** Of the table or index that it is a part or the TOAST of. */
  readonly name: string;
  readonly oid: string;
}

/**
 * Changes one random bit at a time in a file of a table or an index below a running server with data checksums. The pages of
 * that file are evicted before and after, so that the server reads them from the file. The server must be PostgreSQL 18 or newer.
 */
export async function postgresFlips({ flips, draw, note }: PostgresFlipOptions): Promise<void> {
  const server = await startPostgres();
  if ("unavailable" in server) throw new Error(`needs PostgreSQL 18: ${server.unavailable}`);
  const folder = mkdtempSync(join(tmpdir(), "bit-flips-"));
  const client = clientOf(server.url);
  try {
    await client.connect();
    await prepareServer(client);
    const open = (events: SessionEvent[] = []): SessionStore =>
      createPostgresStore({
        url: server.url,
        maxConnections: 1,
        notify: false,
        onEvent: (event) => events.push(event),
      });
    const { refs, fileIds, expected } = await readWhole(open, folder);
    const relations = await relationsOf(client);
    const regions = relations.flatMap((relation) => regionsOf(server.dataFolder, relation));
    for (let flip = 0; flip < flips; flip++) {
      const { file, name, at, bit } = draw(regions, flip);
      const relation = relations.find((each) => file.replace(/_.*$/, "") === each.file) as Relation;
      const evict = (): Promise<void> => evictPages(client, relation);
      const path = join(server.dataFolder, file);
      await evict();
      const page = pageAt(path, at);
      writeAt(path, at, Buffer.of((page.bytes[at - page.at] ?? 0) ^ (1 << bit)));
      const events: SessionEvent[] = [];
      const store = open(events);
      const outcomes = await compareReads({ store, refs, fileIds, more: worksOf(store, folder) }, expected, events);
      await store.close().catch(() => undefined);
      await evict();
      writeAt(path, page.at, page.bytes);
      const errors = outcomes.filter(({ kind }) => kind === "error");
      const wrong = outcomes.filter(({ kind }) => kind === "wrong");
      note({
        flip,
        name,
        right: outcomes.length - errors.length - wrong.length,
        errors: errors.length,
        wrong: wrong.map(({ operation, what }) => `${file} at ${at}, bit ${bit}: ${operation}: ${what}`),
        codes: Object.fromEntries(
          [...Map.groupBy(errors, ({ what }) => what)].map(([code, found]) => [code, found.length]),
        ),
        isInUse: isInUse(page.bytes),
      });
    }
  } finally {
    await client.end().catch(() => undefined);
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function clientOf(url: string): Client {
  // The tools have no dependency of their own: the store's is taken.
  const { Client: Driver } = createRequire(join(repositoryRoot, "packages/store-postgres/package.json"))("pg") as {
    readonly Client: new (options: { readonly connectionString: string }) => Client;
  };
  return new Driver({ connectionString: url });
}

async function prepareServer(client: Client): Promise<void> {
  const { rows } = await client.query(
    "SELECT current_setting('server_version_num') AS version, current_setting('data_checksums') AS checksums",
  );
  const { version, checksums } = rows[0] ?? {};
  if (Number(version) < 180_000 || checksums !== "on")
    throw new Error(`needs PostgreSQL 18 with data checksums, not ${String(version)} with ${String(checksums)}`);
  // A page that the server itself writes would repair the changed bit.
  await client.query("ALTER SYSTEM SET autovacuum = off");
  await client.query("SELECT pg_reload_conf()");
  await client.query("CREATE EXTENSION pg_buffercache");
}

async function readWhole(
  open: () => SessionStore,
  folder: string,
): Promise<{ readonly refs: readonly SessionRef[]; readonly fileIds: readonly string[]; readonly expected: Expected }> {
  const store = open();
  try {
    await fillStore(store);
    // The first search fills the index.
    await searchText(store);
    const { sessions } = await store.list({ state: "any", limit: 1000, sort: "key" });
    // Sessions without records are many and alike: some of them stand for all.
    const refs = sessions.filter(({ head }, index) => head.lastSeq > 0 || index % 6 === 0).map(({ ref }) => ref);
    const fileIds = await fileIdsOf(store);
    return { refs, fileIds, expected: await expectedOf({ store, refs, fileIds, more: worksOf(store, folder) }) };
  } finally {
    await store.close();
  }
}

async function searchText(store: SessionStore): Promise<string> {
  const found: unknown[] = [];
  for (const text of ["first", "fork", "large", "archived"])
    for await (const hit of store.search?.search({ text, limit: 200 }) ?? []) found.push(hit);
  return JSON.stringify(found);
}

/** What a store in PostgreSQL is asked beside the operations that all are. */
function worksOf(store: SessionStore, folder: string): readonly Work[] {
  return [
    { operation: "search", run: () => searchText(store) },
    {
      operation: "backup",
      run: async () => {
        const path = join(folder, "backup.sql");
        rmSync(path, { force: true });
        await store.maintenance?.backup(path);
        return readFileSync(path, "utf8");
      },
    },
    {
      operation: "verify",
      run: async () => {
        const found = await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? []);
        // A damage that is reported counts as an error.
        if (found.some(({ severity }) => severity === "error")) throw refused("STORE_CORRUPT", "damage was reported");
        return found.map(({ code }) => code).join();
      },
    },
  ];
}

/** Every table and index of the store with its own file, those of its TOAST included. */
async function relationsOf(client: Client): Promise<readonly Relation[]> {
  await client.query("VACUUM (FREEZE, ANALYZE)");
  await client.query("CHECKPOINT");
  const { rows } = await client.query(
    `WITH own AS (SELECT oid, reltoastrelid, relname AS name FROM pg_class
       WHERE relnamespace = 'throughline'::regnamespace AND relkind IN ('r', 'i', 'S')),
     toast AS (SELECT c.oid, own.name || ' (TOAST)' AS name FROM own JOIN pg_class c ON c.oid = own.reltoastrelid),
     toast_index AS (SELECT i.indexrelid AS oid, t.name || ' index' AS name FROM toast t JOIN pg_index i ON i.indrelid = t.oid)
     SELECT oid::text, regexp_replace(name, '_[0-9]+(?=_|$| )', '') AS name, pg_relation_filepath(oid) AS file
     FROM (SELECT oid, name FROM own UNION ALL SELECT * FROM toast UNION ALL SELECT * FROM toast_index) all_of
     WHERE pg_relation_size(oid) > 0`,
  );
  return rows.map((row) => ({ oid: String(row["oid"]), name: String(row["name"]), file: String(row["file"]) }));
}

function regionsOf(dataFolder: string, { file, name }: Relation): readonly FlipRegion[] {
  return ["", "_fsm", "_vm"].flatMap((fork) => {
    const path = join(dataFolder, file + fork);
    const size = existsSync(path) ? statSync(path).size : 0;
    return size === 0
      ? []
      : [{ file: file + fork, name: fork === "" ? name : "(maps of free space)", offset: 0, size }];
  });
}

async function evictPages(client: Client, { oid }: Relation): Promise<void> {
  for (;;) {
    const { rows } = await client.query("SELECT buffers_skipped AS skipped FROM pg_buffercache_evict_relation($1)", [
      oid,
    ]);
    if (Number(rows[0]?.["skipped"]) === 0) return;
  }
}

function pageAt(path: string, at: number): { readonly at: number; readonly bytes: Buffer } {
  const from = at - (at % pageBytes);
  const bytes = Buffer.alloc(pageBytes);
  const file = openSync(path, "r");
  try {
    readSync(file, bytes, 0, pageBytes, from);
    return { at: from, bytes };
  } finally {
    closeSync(file);
  }
}

function writeAt(path: string, at: number, bytes: Uint8Array): void {
  const file = openSync(path, "r+");
  try {
    writeSync(file, bytes, 0, bytes.length, at);
  } finally {
    closeSync(file);
  }
}

/** A page in use has items, or the data of an index, behind its header. */
function isInUse(page: Buffer): boolean {
  return page.readUInt16LE(freeSpaceAt) > headerBytes;
}
