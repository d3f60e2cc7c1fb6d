// What idle watches ask of each store: statements a second (SQLite, PostgreSQL) and looks at files (JSONL) while nothing
// happens, with 1, 100 and 10,000 watches of different sessions on one handle; and how long an append of another handle takes
// to arrive. PostgreSQL where THROUGHLINE_POSTGRES_URL names a server.
// node --conditions=@throughline/source lab/benchmarks/idle-watches.ts [--seconds 5] [--counts 1,100,10000]
//   [--stores sqlite,jsonl,postgres]
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { SessionRef, SessionStore } from "../../packages/core/src/index.ts";
import { createJsonlStore } from "../../packages/store-jsonl/src/index.ts";
import { nodeFiles } from "../../packages/store-jsonl/src/files.ts";
import { createPostgresStore, type PostgresStoreOptions } from "../../packages/store-postgres/src/index.ts";
import { createSqliteStore, type SqliteStoreOptions } from "../../packages/store-sqlite/src/index.ts";
import { defaultDriver } from "../../packages/store-sqlite/src/connection.ts";
import { median } from "../../benchmarks/measure.ts";

const require = createRequire(new URL("../../packages/store-postgres/package.json", import.meta.url));
const pg = require("pg") as { readonly Pool: new (options: { connectionString: string; max: number }) => CountedPool };

type CountedPool = NonNullable<PostgresStoreOptions["pool"]> & {
  connect(): Promise<{ query(...given: unknown[]): unknown; release(): void }>;
  end(): Promise<void>;
};

/** A store with a counter of what its handle asks, and a second handle on the same data. */
export interface CountedStore {
  readonly name: string;
  readonly watching: SessionStore;
  readonly writing: SessionStore;
  asked(): number;
  remove(): Promise<void>;
}

function ref(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:watch:${index}` };
}

function countedSqlite(): CountedStore {
  const folder = mkdtempSync(join(tmpdir(), "idle-watches-"));
  let asked = 0;
  const driver: NonNullable<SqliteStoreOptions["driver"]> = (path, options) => {
    const database = defaultDriver(path, options);
    const prepare = database.prepare.bind(database);
    database.prepare = ((sql: string) => counting(prepare(sql))) as typeof database.prepare;
    const pragma = database.pragma.bind(database);
    database.pragma = (...given) => ((asked += 1), pragma(...given));
    return database;
  };
  function counting<Statement extends object>(statement: Statement): Statement {
    return new Proxy(statement, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...given: unknown[]): unknown => {
          if (name === "get" || name === "all" || name === "run" || name === "iterate") asked += 1;
          const result: unknown = Reflect.apply(value, target, given);
          return result === target ? counting(target) : result;
        };
      },
    });
  }
  const path = join(folder, "store.db");
  const watching = createSqliteStore({ path, driver, searchFill: "on-demand" });
  const writing = createSqliteStore({ path });
  const remove = async (): Promise<void> => {
    await watching.close();
    await writing.close();
    rmSync(folder, { recursive: true });
  };
  return { name: "SQLite: statements", watching, writing, asked: () => asked, remove };
}

function countedJsonl(): CountedStore {
  const root = mkdtempSync(join(tmpdir(), "idle-watches-"));
  let asked = 0;
  const files = { ...nodeFiles, facts: (path: string) => ((asked += 1), nodeFiles.facts(path)) };
  const watching = createJsonlStore({ root, files, sessionsJson: false });
  const writing = createJsonlStore({ root, sessionsJson: false });
  const remove = async (): Promise<void> => {
    await watching.close();
    await writing.close();
    rmSync(root, { recursive: true });
  };
  return { name: "JSONL: looks at files", watching, writing, asked: () => asked, remove };
}

function countedPostgres(url: string): CountedStore {
  const schema = `idle_${process.pid}`;
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  let asked = 0;
  const connect = pool.connect.bind(pool);
  pool.connect = (async () => {
    const client = await connect();
    if ((client as { isCounted?: true }).isCounted === true) return client;
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    Object.assign(client, { isCounted: true, query: (...given: unknown[]) => ((asked += 1), query(...given)) });
    return client;
  }) as typeof pool.connect;
  const watching = createPostgresStore({ pool, schema });
  const writing = createPostgresStore({ url, schema });
  const remove = async (): Promise<void> => {
    await watching.close();
    await writing.close();
    const client = await connect();
    await client.query({ text: `DROP SCHEMA "${schema}" CASCADE`, values: [] });
    client.release();
    await pool.end();
  };
  return { name: "PostgreSQL: statements", watching, writing, asked: () => asked, remove };
}

interface Figures {
  readonly askedPerSecond: number;
  readonly arrivalMs: number;
  readonly cpuShare: number;
}

/** Watches so many sessions, lets them be idle, then has another handle write to some of them. */
async function measureIdle(counted: CountedStore, count: number, seconds: number): Promise<Figures> {
  const { watching, writing } = counted;
  for (let index = 0; index < count; index++)
    await writing.save(ref(index), { sessionId: `w${index}` }, { ifRevision: null, durability: "process" });
  const controller = new AbortController();
  const arrived = new Map<number, () => void>();
  const watches = Array.from({ length: count }, async (_, index) => {
    const pages = watching.watch?.watch(ref(index), { afterSeq: 0, signal: controller.signal }) ?? [];
    for await (const _page of pages) arrived.get(index)?.();
  });
  // Until all are followed and looks have become seldom.
  await pause(6000 + count * 3);
  const [from, startMs, cpu] = [counted.asked(), performance.now(), process.cpuUsage()];
  await pause(seconds * 1000);
  const tookMs = performance.now() - startMs;
  const asked = counted.asked() - from;
  const { user, system } = process.cpuUsage(cpu);
  const latencies: number[] = [];
  for (let round = 0; round < 5; round++) {
    const index = Math.floor((round * count) / 5);
    const seen = new Promise<void>((resolve) => arrived.set(index, resolve));
    const sentMs = performance.now();
    await writing.append(ref(index), [{ type: "message", message: { role: "user", content: `${round}` } }]);
    await seen;
    latencies.push(performance.now() - sentMs);
    await pause(2500);
  }
  controller.abort();
  await Promise.all(watches);
  return {
    askedPerSecond: asked / (tookMs / 1000),
    arrivalMs: median(latencies),
    cpuShare: (user + system) / 1000 / tookMs,
  };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "5" },
      counts: { type: "string", default: "1,100,10000" },
      stores: { type: "string", default: "sqlite,jsonl,postgres" },
    },
  });
  const url = process.env["THROUGHLINE_POSTGRES_URL"];
  const places = {
    sqlite: countedSqlite,
    jsonl: countedJsonl,
    ...(url === undefined ? {} : { postgres: () => countedPostgres(url) }),
  };
  process.stdout.write(
    "| store | watches | a second, idle | arrival ms, median | CPU idle |\n| --- | --- | --- | --- | --- |\n",
  );
  const wanted = values.stores.split(",");
  for (const [, open] of Object.entries(places).filter(([name]) => wanted.includes(name)))
    for (const count of values.counts.split(",").map(Number)) {
      const counted = open();
      const { askedPerSecond, arrivalMs, cpuShare } = await measureIdle(counted, count, Number(values.seconds));
      await counted.remove();
      const figures = [askedPerSecond.toFixed(1), arrivalMs.toFixed(0), `${(cpuShare * 100).toFixed(1)} %`];
      process.stdout.write(`| ${[counted.name, count, ...figures].join(" | ")} |\n`);
    }
}
