// What a turn and a session cost on disk and in the log, and how many windows a server reads: the figures of docs/scale.md.
// node --conditions=@throughline/source benchmarks/postgres-size.ts [sessions] [turns a session]
import { createRequire } from "node:module";
import process from "node:process";
import type { SessionRef } from "../packages/core/src/index.ts";
import { createPostgresStore } from "../packages/store-postgres/src/index.ts";
import { startPostgres } from "../packages/store-postgres/test/postgres-server.ts";

interface RawClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
}

const [sessions = 500, turns = 20] = process.argv.slice(2).map(Number);
const require = createRequire(new URL("../packages/store-postgres/package.json", import.meta.url));
const pg = require("pg") as { readonly Client: new (options: { connectionString: string }) => RawClient };

/** Words, so that they compress as words do and not as one letter does. */
function words(length: number, seed: number): string {
  let text = "";
  for (let index = 0; text.length < length; index++) text += `${((index + 7) * (seed + 13) * 2654435761) % 99991} `;
  return text.slice(0, length);
}

function turn(seed: number): { type: string; message: { role: string; content: string } }[] {
  return [
    ["user", 200],
    ["assistant", 300],
    ["toolResult", 1700],
    ["assistant", 500],
  ].map(([role, length], index) => ({
    type: "message",
    message: { role: String(role), content: words(Number(length), seed * 4 + index) },
  }));
}

function refOf(index: number): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:size-${index}` };
}

async function inParallel(count: number, workers: number, run: (index: number) => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (next < count) await run(next++);
    }),
  );
  return (count * 1000) / (performance.now() - startedMs);
}

const say = (text: string): boolean => process.stdout.write(`${text}\n`);
const server = await startPostgres("disk");
if ("unavailable" in server) throw new Error(server.unavailable);
try {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await using store = createPostgresStore({ url: server.url, schema: "size", maxConnections: 16, notify: false });
  const measure = async (): Promise<{ readonly bytes: number; readonly log: number }> => {
    await client.query("CHECKPOINT");
    const { rows } = await client.query(
      "SELECT sum(pg_total_relation_size(c.oid)) AS bytes, pg_current_wal_lsn() - '0/0' AS log FROM pg_class c WHERE c.relnamespace = 'size'::regnamespace AND c.relkind = 'r'",
    );
    return { bytes: Number(rows[0]?.["bytes"]), log: Number(rows[0]?.["log"]) };
  };
  await store.list();
  const empty = await measure();
  const begun = await inParallel(sessions, 16, (index) =>
    store.save(refOf(index), { sessionId: `size-${index}`, label: "a label", model: "a model" }, { ifRevision: null }),
  );
  const withSessions = await measure();
  const content = turn(0).reduce((sum, draft) => sum + JSON.stringify(draft).length, 0);
  const appended = await inParallel(sessions * turns, 16, (index) =>
    store.append(refOf(index % sessions), turn(index), {
      windowFromSeq: Math.max(1, Math.floor(index / sessions) * 4 - 40),
    }),
  );
  const full = await measure();
  const count = sessions * turns;
  say(`${sessions} sessions of ${turns} turns; a turn: 4 records, ${content} bytes of JSON`);
  say(
    `a session: ${Math.round((withSessions.bytes - empty.bytes) / sessions)} bytes in tables and indexes, ${Math.round(begun)} begun a second`,
  );
  say(
    `a turn: ${Math.round((full.bytes - withSessions.bytes) / count)} bytes in tables and indexes, ${Math.round((full.log - withSessions.log) / count)} of log; ${Math.round(appended)} a second over 16 connections`,
  );
  const windows = await inParallel(Math.min(4000, count), 16, (index) => store.readWindow(refOf(index % sessions)));
  const { records } = await store.readWindow(refOf(0));
  say(`a window of ${records.length} records: ${Math.round(windows)} a second over 16 connections`);
  const loads = await inParallel(8000, 16, (index) => store.load(refOf(index % sessions)));
  say(`loads: ${Math.round(loads)} a second over 16 connections`);
  await client.end();
} finally {
  await server.stop();
}
