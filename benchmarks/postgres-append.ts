// Turns of the PostgreSQL store against raw single statements on the same server in the same run: turns a second, CPU of the
// client and of the server's processes, bytes of log.
// node --conditions=@throughline/source benchmarks/postgres-append.ts [rounds] [milliseconds a round]
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import process from "node:process";
import { crc32 } from "node:zlib";
import type { AppendOptions, SessionRef } from "../packages/core/src/index.ts";
import { createPostgresStore } from "../packages/store-postgres/src/index.ts";
import type { PostgresConnection } from "../packages/store-postgres/src/connection-pool.ts";
import type { PostgresPool, PostgresStore, PostgresStoreOptions } from "../packages/store-postgres/src/index.ts";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";

interface RawClient {
  query(
    query: string | { name?: string; text: string; values: unknown[] },
  ): Promise<{ rows: Record<string, unknown>[] }>;
  release(): void;
}

interface RawPool extends PostgresPool {
  connect(): Promise<PostgresConnection & RawClient>;
  query: RawClient["query"];
  on(event: "error", listener: (error: Error) => void): void;
  end(): Promise<void>;
}

const [rounds = 9, roundMs = 400] = process.argv.slice(2).map(Number);
const require = createRequire(new URL("../packages/store-postgres/package.json", import.meta.url));
const pg = require("pg") as {
  readonly Pool: new (options: { connectionString: string; max: number; idleTimeoutMillis: number }) => RawPool;
};

/** A turn: a question, a call of a tool, its result, the answer. About 3 KB. */
const messages: readonly { readonly role: string; readonly content: string; readonly [field: string]: string }[] = [
  { role: "user", content: "q".repeat(200) },
  { role: "assistant", content: "c".repeat(300) },
  { role: "toolResult", toolCallId: "call_1", toolName: "read", content: "r".repeat(1700) },
  { role: "assistant", content: "a".repeat(500) },
];

/**
 * The same rows, column by column, by hand: the session found by its address, on the database's clock, and an answer from
 * which a caller can go on. No rule of the contract is in it: no turn, no fence, no key, no limit, no durability of its own.
 */
const sameRowsSql = `
WITH u AS (
  UPDATE bench.same_sessions AS t SET last_seq = t.last_seq + cardinality($2::text[]), prev_head_id = t.head_id,
    prev_head_bytes = t.head_bytes, head_id = $3::text, head_bytes = $4::int, message_count = t.message_count + 4,
    messages_ever = t.messages_ever + 4, appended_at_ms = floor(date_part('epoch', clock_timestamp()) * 1000)::bigint,
    updated_at_ms = greatest(t.updated_at_ms, floor(date_part('epoch', clock_timestamp()) * 1000)::bigint)
  WHERE t.namespace = '' AND t.agent_id = 'main' AND t.key = $1::text AND t.archive_id = ''
  RETURNING t.session_no, t.session_id, t.revision, t.last_seq, t.last_seq - cardinality($2::text[]) AS before_seq,
    t.messages_ever - 4 AS messages_before, t.prev_head_id, t.window_seq, t.fence, t.appended_at_ms, t.updated_at_ms
), i AS (
  INSERT INTO bench.same_records (session_no, seq, id, parent_id, type, side, ts_ms, stored_at_ms, message_number, bytes, crc, role, tool_name, rest)
  SELECT u.session_no, u.before_seq + r.place, r.id, coalesce(r.parent_id, u.prev_head_id), r.type, r.side, r.ts_ms,
    u.appended_at_ms, u.messages_before + r.place, r.bytes, r.crc, r.role, r.tool_name, r.rest
  FROM u CROSS JOIN unnest($2::text[], $5::text[], $6::text[], $7::boolean[], $8::bigint[], $9::int[], $10::bigint[], $11::text[],
    $12::text[], $13::text[]) WITH ORDINALITY AS r (id, parent_id, type, side, ts_ms, bytes, crc, role, tool_name, rest, place)
)
SELECT * FROM u`;

/** Fewer columns than the store keeps, the place in the session known beforehand, and no answer. */
const controlSql = `
WITH updated AS (
  UPDATE bench.control_sessions SET last_seq = last_seq + cardinality($3::text[]), head_id = $11::text,
    appended_at_ms = $12::bigint, updated_at_ms = $12, message_count = message_count + 4
  WHERE session_no = $1::bigint AND last_seq = $2::bigint RETURNING session_no, last_seq
)
INSERT INTO bench.control_records (session_no, seq, id, parent_id, type, side, ts_ms, stored_at_ms, message_number, bytes, crc, role, rest)
SELECT u.session_no, $2 + r.place, r.id, r.parent_id, r.type, r.side, r.ts_ms, $12, r.place, r.bytes, r.crc, r.role, r.rest
FROM updated u CROSS JOIN unnest($3, $4::text[], $5::text[], $6::boolean[], $7::bigint[], $8::int[], $9::bigint[], $10::text[], $13::text[])
  WITH ORDINALITY AS r (id, parent_id, type, side, ts_ms, bytes, crc, rest, role, place)`;

let ids = 0;

/** The rows of a turn, made as a program would that has nothing but these columns to fill. */
function controlValues(sessionNo: number, lastSeq: number): unknown[] {
  const nowMs = Date.now();
  const rows = messages.map((message) => {
    ids += 1;
    const rest = `"timestamp":"${new Date(nowMs).toISOString()}",${JSON.stringify({ message }).slice(1)}`;
    return { id: `${nowMs}_${String(ids).padStart(8, "0")}`, rest, crc: crc32(rest), bytes: Buffer.byteLength(rest) };
  });
  const column = (pick: (row: (typeof rows)[number], index: number) => unknown): unknown[] => rows.map(pick);
  return [
    sessionNo,
    lastSeq,
    column((row) => row.id),
    column((_row, index) => rows[index - 1]?.id ?? null),
    column(() => "message"),
    column(() => false),
    column(() => nowMs),
    column((row) => row.bytes),
    column((row) => row.crc),
    column((row) => row.rest),
    rows.at(-1)?.id,
    nowMs,
    column((_row, index) => messages[index]?.role),
  ];
}

/** The same rows with the columns that `sameRowsSql` has besides. */
function sameRowsValues(key: string): unknown[] {
  const [, , ids, parents, types, sides, times, bytes, crcs, rests, head, , roles] = controlValues(0, 0);
  return [
    key,
    ids,
    head,
    JSON.stringify(head).length,
    parents,
    types,
    sides,
    times,
    bytes,
    crcs,
    roles,
    [null, null, null, null],
    rests,
  ];
}

interface Contestant {
  readonly name: string;
  /** The server's processes that work for it. */
  readonly backends: readonly number[];
  run(connection: number): Promise<void>;
}

/** What a turn took, in microseconds of wall clock and of CPU, and in bytes. */
interface Cost {
  readonly wall: number;
  readonly client: number;
  readonly server: number;
  readonly log: number;
}

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:bench-${index}` };
}

function middle(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** CPU time of processes so far; nothing where the system does not tell it like Linux. */
function cpuMicroseconds(pids: readonly number[]): number {
  try {
    return pids.reduce(
      (sum, pid) => sum + Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1000,
      0,
    );
  } catch {
    return Number.NaN;
  }
}

async function costOf(contestant: Contestant, connections: number, logBytes: () => Promise<number>): Promise<Cost> {
  let turns = 0;
  const logBefore = await logBytes();
  const [serverBefore, clientBefore] = [cpuMicroseconds(contestant.backends), process.cpuUsage()];
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async (_, connection) => {
      while (performance.now() < startedMs + roundMs) {
        await contestant.run(connection);
        turns += 1;
      }
    }),
  );
  const wall = (performance.now() - startedMs) * 1000;
  const { user, system } = process.cpuUsage(clientBefore);
  const server = cpuMicroseconds(contestant.backends) - serverBefore;
  const log = (await logBytes()) - logBefore;
  return { wall: wall / turns, client: (user + system) / turns, server: server / turns, log: log / turns };
}

/** Connections that stay, and the processes behind them. */
async function openPool(
  url: string,
  connections: number,
): Promise<{ readonly pool: RawPool; readonly backends: number[] }> {
  const pool = new pg.Pool({ connectionString: url, max: connections, idleTimeoutMillis: 0 });
  pool.on("error", (error) => process.stderr.write(`${error.message}\n`));
  const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()));
  const answers = await Promise.all(clients.map((client) => client.query("SELECT pg_backend_pid() AS pid")));
  for (const client of clients) client.release();
  return { pool, backends: answers.map(({ rows }) => Number(rows[0]?.["pid"])) };
}

function tablesLike(name: string): string {
  const partitions = Array.from(
    { length: 16 },
    (_, index) =>
      `CREATE TABLE bench.${name}_records_${index} PARTITION OF bench.${name}_records FOR VALUES WITH (MODULUS 16, REMAINDER ${index});`,
  );
  const columns =
    "session_no, namespace, agent_id, key, session_id, revision, created_at_ms, updated_at_ms, entry_names, entry_values";
  return `DROP TABLE IF EXISTS bench.${name}_sessions; DROP TABLE IF EXISTS bench.${name}_records;
    CREATE TABLE bench.${name}_sessions (LIKE bench.sessions INCLUDING ALL) WITH (fillfactor = 70);
    CREATE TABLE bench.${name}_records (LIKE bench.records INCLUDING ALL) PARTITION BY HASH (session_no);
    ${partitions.join("\n")}
    INSERT INTO bench.${name}_sessions (${columns}) SELECT ${columns} FROM bench.sessions;`;
}

async function compare(url: string, connections: number): Promise<void> {
  const pools: RawPool[] = [];
  const stores: PostgresStore[] = [];
  const open = async (): Promise<Awaited<ReturnType<typeof openPool>>> => {
    const opened = await openPool(url, connections);
    pools.push(opened.pool);
    return opened;
  };
  const storeTurns = async (
    name: string,
    { prepare = true, layout = "plain" }: Pick<PostgresStoreOptions, "prepare" | "layout"> = {},
    options: () => AppendOptions = () => ({}),
  ): Promise<Contestant> => {
    const { pool, backends } = await open();
    const schema = layout === "plain" ? "bench" : "bench_tenant";
    const store = createPostgresStore({ pool, schema, layout, prepare, notify: false });
    stores.push(store);
    for (let index = 0; index < connections; index++)
      if ((await store.load(refOf(index))) === null)
        await store.save(
          refOf(index),
          { sessionId: `bench-${index}`, label: "bench", model: "none" },
          { ifRevision: null },
        );
    const run = async (connection: number): Promise<void> => {
      const drafts = messages.map((message) => ({ type: "message", message }));
      await store.append(refOf(connection), drafts, options());
    };
    return { name, backends, run };
  };
  const byHand = async (
    name: string,
    text: string,
    valuesOf: (connection: number) => unknown[],
  ): Promise<Contestant> => {
    const { pool, backends } = await open();
    const clients = await Promise.all(backends.map(() => pool.connect()));
    const run = async (connection: number): Promise<void> => {
      await clients[connection]?.query({ name: text.slice(0, 20).trim(), text, values: valuesOf(connection) });
    };
    clientsOf.push(...clients);
    return { name, backends, run };
  };
  const clientsOf: RawClient[] = [];
  const { pool: admin } = await open();
  const first = await storeTurns("the store");
  await admin.query(`${tablesLike("same")} ${tablesLike("control")}`);
  const found = await admin.query("SELECT session_no, key FROM bench.control_sessions");
  const numbers = new Map(found.rows.map((row) => [row["key"], Number(row["session_no"])]));
  const lastSeqs = Array.from({ length: connections }, () => 0);
  const fewerValues = (connection: number): unknown[] => {
    const lastSeq = lastSeqs[connection] ?? 0;
    lastSeqs[connection] = lastSeq + messages.length;
    return controlValues(numbers.get(refOf(connection).key) ?? 0, lastSeq);
  };
  const contestants: readonly Contestant[] = [
    await byHand("the same rows by hand", sameRowsSql, (connection) => sameRowsValues(refOf(connection).key)),
    await byHand("fewer columns by hand", controlSql, fewerValues),
    first,
    await storeTurns("the store, tenant layout", { layout: "tenant" }),
    await storeTurns("the store, no names", { prepare: false }),
    await storeTurns("the store, key and entry", {}, () => ({
      idempotencyKey: `k${++ids}`,
      entry: { totalTokens: ids },
    })),
  ];
  const logBytes = async (): Promise<number> =>
    Number((await admin.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS log")).rows[0]?.["log"]);
  const costs = contestants.map((): Cost[] => []);
  // The first rounds fill caches and plans.
  for (let round = -2; round < rounds; round++) {
    const order = round % 2 === 0 ? contestants.keys() : [...contestants.keys()].toReversed();
    for (const index of order) {
      const contestant = contestants[index];
      if (contestant === undefined) continue;
      const cost = await costOf(contestant, connections, logBytes);
      if (round >= 0) costs[index]?.push(cost);
    }
  }
  const rounded = (index: number, pick: (cost: Cost) => number): string =>
    middle((costs[index] ?? []).map(pick)).toFixed(0);
  const against = (index: number, pick: (cost: Cost) => number): string =>
    middle((costs[index] ?? []).map((cost, round) => pick(cost) / pick(costs[0]?.[round] ?? cost))).toFixed(2);
  process.stdout.write(
    `${connections} connection${connections === 1 ? "" : "s"}, disk, ${rounds} rounds of ${roundMs} ms; microseconds a turn, and over the first:\n`,
  );
  for (const [index, { name }] of contestants.entries())
    process.stdout.write(
      `  ${name}: ${Math.round(1e6 / middle((costs[index] ?? []).map(({ wall }) => wall)))} turns/s, time x ${against(index, ({ wall }) => wall)}; ` +
        `CPU client ${rounded(index, ({ client }) => client)}, server ${rounded(index, ({ server }) => server)}, x ${against(index, ({ client, server }) => client + server)}; ` +
        `log ${rounded(index, ({ log }) => log)} bytes\n`,
    );
  for (const each of stores) await each.close();
  for (const client of clientsOf) client.release();
  for (const pool of pools) await pool.end();
}

const server = await startPostgres("disk");
if ("unavailable" in server) throw new Error(server.unavailable);
try {
  for (const connections of [1, 16]) await compare(server.url, connections);
} finally {
  await server.stop();
}
