// Vectors in PGlite with pgvector: every case of the kit about vectors passes where the extension is installed, in both layouts, with
// the plain columns that a store without it has. `--measure` compares what pgvector would do instead, by turns, on 512 numbers: an
// exact scan of `halfvec`, signs first and then `halfvec`, and an HNSW index, with its time to build and its size. PGlite runs
// PostgreSQL in WebAssembly, so its times compare with each other only. The packages are installed from the npm registry.
// node --conditions=@throughline/source lab/pglite-vectors.ts [--measure 20000] [folder that keeps the packages]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import type { SessionStore } from "../packages/core/src/index.ts";
import { vectorCases } from "../packages/store-conformance/src/cases/vectors.ts";
import type { StoreUnderTest } from "../packages/store-conformance/src/index.ts";
import { createPostgresStore, type PostgresStoreOptions } from "../packages/store-postgres/src/index.ts";
import { median } from "../benchmarks/measure.ts";
import { skippedPrefix } from "../tools/long-suite.ts";
import { freePort } from "../tools/free-port.ts";
import { installPeers } from "./peer-packages.ts";

const peers = {
  "@electric-sql/pglite": "0.5.14",
  "@electric-sql/pglite-pgvector": "0.0.15",
  "@electric-sql/pglite-socket": "0.2.17",
};

interface Database {
  exec(sql: string): Promise<unknown>;
  query(sql: string): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>;
  close(): Promise<void>;
}

interface Loaded {
  readonly PGlite: {
    readonly defaultStartParams: readonly string[];
    create(options: object): Promise<Database>;
  };
  readonly vector: unknown;
  readonly PGLiteSocketServer: new (options: object) => { start(): Promise<void>; stop(): Promise<void> };
}

const { values, positionals } = parseArgs({ options: { measure: { type: "string" } }, allowPositionals: true });
const [given] = positionals;
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-pglite-"));

async function load(): Promise<Loaded> {
  const names = Object.keys(peers).map((name) => join(folder, "node_modules", name, "dist/index.js"));
  const found = await Promise.all(names.map((path) => import(pathToFileURL(path).href) as Promise<object>));
  return Object.assign({}, ...found) as Loaded;
}

/** A store refuses a server without fsync, which is how PGlite starts by itself. */
async function openDatabase({ PGlite, vector }: Loaded): Promise<Database> {
  const startParams = PGlite.defaultStartParams.filter((param) => param !== "-F");
  const database = await PGlite.create({ extensions: { vector }, startParams });
  await database.exec("CREATE EXTENSION vector");
  return database;
}

async function runCases(loaded: Loaded): Promise<boolean> {
  const database = await openDatabase(loaded);
  const port = await freePort();
  const server = new loaded.PGLiteSocketServer({ db: database, host: "127.0.0.1", port, maxConnections: 100 });
  await server.start();
  const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  const [about] = (await database.query("SELECT extversion AS version FROM pg_extension WHERE extname = 'vector'"))
    .rows;
  process.stdout.write(`pgvector ${String(about?.["version"])}\n`);
  let isWhole = true;
  for (const layout of ["plain", "tenant"] as const) {
    let passed = 0;
    for (const [index, { id, run }] of vectorCases.entries()) {
      const problem = await runCase({ url, schema: `${layout}_${index}`, layout, partitions: 2, notify: false }, run);
      if (problem === null) passed++;
      else process.stdout.write(`FAIL ${layout} ${id}: ${problem}\n`);
    }
    process.stdout.write(`${layout} layout: ${passed} of ${vectorCases.length} cases of vectors pass\n`);
    isWhole &&= passed === vectorCases.length;
  }
  await server.stop();
  await database.close();
  return isWhole;
}

async function runCase(
  options: PostgresStoreOptions,
  run: (typeof vectorCases)[number]["run"],
): Promise<string | null> {
  const stores: SessionStore[] = [];
  const open = async (): Promise<SessionStore> => {
    const store = createPostgresStore(options);
    stores.push(store);
    return Promise.resolve(store);
  };
  const store = await open();
  const under: StoreUnderTest = { store, reopen: open, another: open, dispose: () => Promise.resolve() };
  try {
    await run({ under, store } as Parameters<typeof run>[0]);
    return null;
  } catch (error) {
    return String(error);
  } finally {
    for (const each of stores) await each.close();
  }
}

const dimensions = 512;
const centers = 200;
let state = 7;
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 31 - 1;
}
const around = Array.from({ length: centers }, () => Float32Array.from({ length: dimensions }, random));
/** Texts are near each other in groups, so vectors are too. */
const randomVector = (): Float32Array =>
  (around[Math.floor(((random() + 1) / 2) * centers) % centers] as Float32Array).map((x) => x + 1.2 * random());
const written = (vector: Float32Array): string => `'[${Array.from(vector, (x) => x.toFixed(4)).join(",")}]'`;
const signs = (text: string): string => `binary_quantize(${text}::vector)::bit(${dimensions})`;

async function fill(database: Database, count: number): Promise<void> {
  await database.exec(
    `CREATE TABLE v (number integer PRIMARY KEY, code bit(${dimensions}), near halfvec(${dimensions}))`,
  );
  for (let from = 0; from < count; from += 500) {
    const rows = Array.from({ length: Math.min(500, count - from) }, (_, index) => {
      const text = written(randomVector());
      return `(${from + index}, ${signs(text)}, ${text})`;
    });
    await database.exec(`INSERT INTO v VALUES ${rows.join(",")}`);
  }
  await database.exec("ANALYZE v");
}

const nearest = (text: string): string => `SELECT number FROM v ORDER BY near <=> ${text}::halfvec LIMIT 50`;
const bySigns = (text: string): string =>
  `SELECT number FROM (SELECT number, near FROM v ORDER BY code <~> ${signs(text)} LIMIT 200) c
   ORDER BY near <=> ${text}::halfvec LIMIT 50`;

async function measure(loaded: Loaded, count: number): Promise<void> {
  const database = await openDatabase(loaded);
  await fill(database, count);
  const questions = Array.from({ length: 20 }, () => written(randomVector()));
  const wanted: ReadonlySet<unknown>[] = [];
  const ask = async (name: string, sql: (text: string) => string): Promise<void> => {
    const times: number[] = [];
    let hits = 0;
    for (const [index, text] of questions.entries()) {
      const startedMs = performance.now();
      const { rows } = await database.query(sql(text));
      times.push(performance.now() - startedMs);
      const numbers = new Set(rows.map(({ number }) => number));
      wanted[index] ??= numbers;
      hits += numbers.intersection(wanted[index]).size;
    }
    process.stdout.write(
      `${name}: ${median(times).toFixed(1)} ms, ${(hits / questions.length / 0.5).toFixed(1)} % of the 50 nearest\n`,
    );
  };
  await ask("exact scan of halfvec", nearest);
  await ask("signs, then 200 of halfvec", bySigns);
  const startedMs = performance.now();
  await database.exec("CREATE INDEX h ON v USING hnsw (near halfvec_cosine_ops)");
  const [sizes] = (await database.query("SELECT pg_relation_size('h') AS index, pg_table_size('v') AS rows")).rows;
  const megabytes = (name: string): string => (Number(sizes?.[name]) / 2 ** 20).toFixed(0);
  process.stdout.write(
    `HNSW of ${count}: ${((performance.now() - startedMs) / 1000).toFixed(0)} s to build, ${megabytes("index")} MB beside ${megabytes("rows")} MB of rows\n`,
  );
  for (const breadth of [40, 200]) {
    await database.exec(`SET hnsw.ef_search = ${breadth}`);
    await ask(`HNSW, ef_search ${breadth}`, nearest);
  }
  await database.close();
}

try {
  if (installPeers(folder, peers, [])) {
    const loaded = await load();
    if (!(await runCases(loaded))) process.exitCode = 1;
    if (values.measure !== undefined) await measure(loaded, Number(values.measure));
  } else process.stdout.write(`${skippedPrefix}PGlite could not be installed\n`);
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
