// Turns of the PostgreSQL store against raw single statements on the same server in the same run.
// node --conditions=@throughline/source benchmarks/postgres-append.ts [rounds] [milliseconds a round]
import { createRequire } from "node:module";
import process from "node:process";
import { crc32 } from "node:zlib";
import type { AppendOptions, SessionRef } from "../packages/core/src/index.ts";
import { createPostgresStore } from "../packages/store-postgres/src/index.ts";
import type { PostgresStore } from "../packages/store-postgres/src/index.ts";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";

interface RawClient {
  connect(): Promise<unknown>;
  query(
    query: string | { name?: string; text: string; values: unknown[] },
  ): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
}

const [rounds = 9, roundMs = 400] = process.argv.slice(2).map(Number);
const require = createRequire(new URL("../packages/store-postgres/package.json", import.meta.url));
const pg = require("pg") as { readonly Client: new (options: { connectionString: string }) => RawClient };

/** A turn: a question, a call of a tool, its result, the answer. About 3 KB. */
const messages: readonly { readonly role: string; readonly content: string }[] = [
  { role: "user", content: "q".repeat(200) },
  { role: "assistant", content: "c".repeat(300) },
  { role: "toolResult", content: "r".repeat(1700) },
  { role: "assistant", content: "a".repeat(500) },
];

/** The least that keeps a session's row and its records in one conditional statement: no rule of the contract is in it. */
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

interface Contestant {
  readonly name: string;
  run(connection: number): Promise<void>;
}

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:bench-${index}` };
}

function storeTurns(name: string, store: PostgresStore, options: () => AppendOptions = () => ({})): Contestant {
  return {
    name,
    async run(connection) {
      const drafts = messages.map((message) => ({ type: "message", message }));
      await store.append(refOf(connection), drafts, options());
    },
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

async function rateOf(contestant: Contestant, connections: number): Promise<number> {
  let turns = 0;
  const startedMs = performance.now();
  const untilMs = startedMs + roundMs;
  await Promise.all(
    Array.from({ length: connections }, async (_, connection) => {
      while (performance.now() < untilMs) {
        await contestant.run(connection);
        turns += 1;
      }
    }),
  );
  return (turns * 1000) / (performance.now() - startedMs);
}

const server = await startPostgres();
if ("unavailable" in server) throw new Error(server.unavailable);
try {
  for (const connections of [1, 16]) {
    const clients = await Promise.all(
      Array.from({ length: connections }, async () => {
        const client = new pg.Client({ connectionString: server.url });
        await client.connect();
        return client;
      }),
    );
    const stores = [false, true].map((prepare) =>
      createPostgresStore({ url: server.url, schema: "bench", maxConnections: connections, prepare, notify: false }),
    );
    const [store, preparing] = stores as [PostgresStore, PostgresStore];
    for (let index = 0; index < connections; index++)
      if ((await store.load(refOf(index))) === null)
        await store.save(
          refOf(index),
          { sessionId: `bench-${index}`, label: "bench", model: "none" },
          { ifRevision: null },
        );
    const admin = clients[0];
    await admin?.query(`DROP TABLE IF EXISTS bench.control_sessions; DROP TABLE IF EXISTS bench.control_records;
      CREATE TABLE bench.control_sessions (LIKE bench.sessions INCLUDING ALL) WITH (fillfactor = 70);
      CREATE TABLE bench.control_records (LIKE bench.records INCLUDING ALL) PARTITION BY HASH (session_no);
      ${Array.from({ length: 16 }, (_, index) => `CREATE TABLE bench.control_records_${index} PARTITION OF bench.control_records FOR VALUES WITH (MODULUS 16, REMAINDER ${index});`).join("\n")}
      INSERT INTO bench.control_sessions (session_no, namespace, agent_id, key, session_id, revision, created_at_ms, updated_at_ms, entry_names, entry_values)
        SELECT session_no, namespace, agent_id, key, session_id, revision, created_at_ms, updated_at_ms, entry_names, entry_values FROM bench.sessions`);
    const numbers = (await admin?.query("SELECT session_no FROM bench.control_sessions ORDER BY key"))?.rows.map(
      (row) => Number(row["session_no"]),
    );
    const lastSeqs = clients.map(() => 0);
    const control = (name: string | undefined): Contestant => ({
      name: name === undefined ? "control, unnamed" : "control",
      async run(connection) {
        const values = controlValues(numbers?.[connection] ?? 0, lastSeqs[connection] ?? 0);
        await clients[connection]?.query({ ...(name === undefined ? {} : { name }), text: controlSql, values });
        lastSeqs[connection] = (lastSeqs[connection] ?? 0) + messages.length;
      },
    });
    const contestants: readonly Contestant[] = [
      control("control"),
      control(undefined),
      storeTurns("store", store),
      storeTurns("store, prepared", preparing),
      storeTurns("store, key and entry", store, () => ({ idempotencyKey: `k${++ids}`, entry: { totalTokens: ids } })),
    ];
    const rates = contestants.map((): number[] => []);
    // The first rounds fill caches and plans.
    for (let round = -2; round < rounds; round++) {
      const order = round % 2 === 0 ? contestants.keys() : [...contestants.keys()].toReversed();
      for (const index of order) {
        const contestant = contestants[index];
        if (contestant === undefined) continue;
        const rate = await rateOf(contestant, connections);
        if (round >= 0) rates[index]?.push(rate);
      }
    }
    const against = (index: number): number =>
      median((rates[index] ?? []).map((rate, round) => (rates[0]?.[round] ?? Number.NaN) / rate));
    process.stdout.write(
      `${connections} connection${connections === 1 ? "" : "s"}, disk, ${rounds} rounds of ${roundMs} ms:\n`,
    );
    for (const [index, contestant] of contestants.entries())
      process.stdout.write(
        `  ${contestant.name}: ${Math.round(median(rates[index] ?? []))} turns/s, ${against(index).toFixed(2)} x the time of the control\n`,
      );
    for (const each of stores) await each.close();
    for (const client of clients) await client.end();
  }
} finally {
  await server.stop();
}
