// What a turn and a session cost on disk and in the log, and what windows, loads and lists cost the server and the client:
// the figures of docs/scale.md.
// node --conditions=@throughline/source lab/benchmarks/postgres-size.ts [sessions] [turns a session]
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";
import type { SessionRef } from "../../packages/core/src/index.ts";
import { createPostgresStore } from "../../packages/store-postgres/src/index.ts";
import { startPostgres } from "../../packages/store-postgres/test/postgres-server.ts";

interface RawClient {
  connect(): Promise<unknown>;
  query(text: string): Promise<{ rows: Record<string, unknown>[] }>;
  end(): Promise<void>;
}

const [sessions = 500, turns = 20] = process.argv.slice(2).map(Number);
const require = createRequire(new URL("../../packages/store-postgres/package.json", import.meta.url));
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

/** Of the store's connections; not a number where the system does not tell. */
async function serverMicroseconds(client: RawClient): Promise<number> {
  const { rows } = await client.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'throughline'");
  try {
    return rows.reduce(
      (sum, { pid }) => sum + Number(readFileSync(`/proc/${Number(pid)}/schedstat`, "utf8").split(" ")[0]) / 1000,
      0,
    );
  } catch {
    return Number.NaN;
  }
}

/** How often a second, and the CPU of each in microseconds: counted over the connections of the run, which stay. */
async function inParallel(
  client: RawClient,
  count: number,
  workers: number,
  run: (index: number) => Promise<unknown>,
): Promise<{ readonly perSecond: number; readonly cpu: string }> {
  const [serverBefore, clientBefore] = [await serverMicroseconds(client), process.cpuUsage()];
  const startedMs = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (next < count) await run(next++);
    }),
  );
  const perSecond = Math.round((count * 1000) / (performance.now() - startedMs));
  const { user, system } = process.cpuUsage(clientBefore);
  const server = (await serverMicroseconds(client)) - serverBefore;
  return {
    perSecond,
    cpu: `CPU client ${Math.round((user + system) / count)}, server ${Math.round(server / count)} us`,
  };
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
  const begun = await inParallel(client, sessions, 16, (index) =>
    store.save(refOf(index), { sessionId: `size-${index}`, label: "a label", model: "a model" }, { ifRevision: null }),
  );
  const withSessions = await measure();
  const content = turn(0).reduce((sum, draft) => sum + JSON.stringify(draft).length, 0);
  const appended = await inParallel(client, sessions * turns, 16, (index) =>
    store.append(refOf(index % sessions), turn(index), {
      windowFromSeq: Math.max(1, Math.floor(index / sessions) * 4 - 40),
    }),
  );
  const full = await measure();
  const count = sessions * turns;
  say(`${sessions} sessions of ${turns} turns; a turn: 4 records, ${content} bytes of JSON`);
  say(
    `a session: ${Math.round((withSessions.bytes - empty.bytes) / sessions)} bytes in tables and indexes, ${begun.perSecond} begun a second, ${begun.cpu}`,
  );
  say(
    `a turn: ${Math.round((full.bytes - withSessions.bytes) / count)} bytes in tables and indexes, ${Math.round((full.log - withSessions.log) / count)} of log; ${appended.perSecond} a second over 16 connections, ${appended.cpu}`,
  );
  const windows = await inParallel(client, Math.min(4000, count), 16, (index) =>
    store.readWindow(refOf(index % sessions)),
  );
  const { records } = await store.readWindow(refOf(0));
  say(`a window of ${records.length} records: ${windows.perSecond} a second over 16 connections, ${windows.cpu}`);
  const loads = await inParallel(client, 8000, 16, (index) => store.load(refOf(index % sessions)));
  say(`loads: ${loads.perSecond} a second over 16 connections, ${loads.cpu}`);
  const lists = await inParallel(client, 2000, 16, () => store.list({ limit: 50 }));
  say(`lists of 50: ${lists.perSecond} a second over 16 connections, ${lists.cpu}`);
  await client.end();
} finally {
  await server.stop();
}
