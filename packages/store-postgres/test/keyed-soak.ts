// Keyed appends while connections are cut, statements canceled and the server killed. Started by itself it prints its counts:
// node --conditions=@throughline/source packages/store-postgres/test/keyed-soak.ts 5000 [seed]
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { ThroughlineError, type SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import type { PostgresServer } from "./postgres-server.ts";
import { startPostgres } from "./postgres-server.ts";
import { newSchema, withClient } from "./store-under-test.ts";
import { startProxy, type Fault } from "./tcp-proxy.ts";

export interface SoakCounts {
  appends: number;
  /** Calls, repeats included. */
  attempts: number;
  unknown: number;
  notApplied: number;
  /** A call said that nothing was applied, and the record was in the log. */
  falselyNotApplied: number;
  /** A call of unknown outcome had been applied; its repeat said so. */
  replayed: number;
  kills: number;
  /** Records of acknowledged appends that are not in the log, or more than once. */
  lost: number;
  twice: number;
}

const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:soak" };
const faults: readonly Fault[] = [
  "cut-before",
  { cutAfterBytes: 1 },
  { cutAfterBytes: 300 },
  "cut-answer",
  "half-close",
];
const writers = 4;

export interface SoakSize {
  /** How many at least. While `unknown` or `replayed` are not reached, up to ten times as many: how often a fault meets an append depends on the machine. */
  readonly appends: number;
  readonly kills: number;
  /** Outcomes to be met, at least. */
  readonly unknown: number;
  readonly replayed: number;
  readonly seed: number;
}

/** Four writers, each its appends one after the other until each is acknowledged, while something breaks all the time. */
export async function soakKeyedAppends(server: PostgresServer, size: SoakSize): Promise<SoakCounts> {
  const { appends, kills, seed } = size;
  const counts: SoakCounts = {
    appends: 0,
    attempts: 0,
    unknown: 0,
    notApplied: 0,
    falselyNotApplied: 0,
    replayed: 0,
    kills: 0,
    lost: 0,
    twice: 0,
  };
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  const proxy = await startProxy(server.port);
  const schema = newSchema();
  const direct = createPostgresStore({ url: server.url, schema, partitions: 2, notify: false, timeoutMs: 20_000 });
  await direct.save(ref, { sessionId: "soak" }, { ifRevision: null });
  const through = server.url.replace(/:\d+\/postgres$/, `:${proxy.port}/postgres`);
  const isThere = async (text: string): Promise<boolean> =>
    withClient(server.url, async (client) => {
      const { rows } = await client.query(`SELECT FROM "${schema}".records WHERE rest LIKE $1 LIMIT 1`, [
        `%"${text}"%`,
      ]);
      return rows.length > 0;
    }).catch(() => false);
  const goesOn = (turn: number): boolean =>
    turn < appends || (turn < 10 * appends && (counts.unknown < size.unknown || counts.replayed < size.replayed));
  let isOver = false;
  const acknowledged: string[] = [];
  const write = async (writer: number): Promise<void> => {
    const open = (): PostgresStore =>
      createPostgresStore({
        url: `${through}?options=${encodeURIComponent("-c statement_timeout=2000")}`,
        schema,
        migrate: false,
        notify: false,
        maxConnections: 1,
        timeoutMs: 3000,
        lockTimeoutMs: 300,
      });
    let store = open();
    for (let turn = writer; goesOn(turn); turn += writers) {
      const text = `soak ${turn} of ${seed}`;
      const draft = { type: "message", message: { role: "user", content: text } };
      const drafts = turn % 3 === 0 ? [{ ...draft, id: `id-${turn}` }] : [draft];
      for (;;) {
        counts.attempts += 1;
        if (random(4) === 0) proxy.fault = faults[random(faults.length)] ?? null;
        try {
          const entry = turn % 2 === 0 ? { entry: { label: text } } : {};
          const { replayed } = await store.append(ref, drafts, { idempotencyKey: text, ...entry });
          if (replayed) counts.replayed += 1;
          counts.appends += 1;
          acknowledged.push(text);
          break;
        } catch (error) {
          if (!ThroughlineError.isInstance(error)) throw error;
          if (error.outcome === "unknown") counts.unknown += 1;
          else {
            counts.notApplied += 1;
            if (await isThere(text)) counts.falselyNotApplied += 1;
          }
          // Another process would begin anew.
          if (random(5) === 0) {
            await store.close();
            store = open();
          }
        }
      }
    }
    await store.close();
  };
  const breaking = (async (): Promise<void> => {
    for (let round = 1; !isOver; round++) {
      await sleep(15);
      if (counts.kills < kills && acknowledged.length > ((counts.kills + 1) * appends) / (kills + 1)) {
        counts.kills += 1;
        await server.kill();
        await server.start();
      }
      const how = ["pg_terminate_backend(pid)", "pg_cancel_backend(pid)"][random(2)] ?? "";
      const victims = `SELECT pid FROM pg_stat_activity WHERE application_name = 'throughline' AND state = 'active' ORDER BY md5(pid::text || '${round}') LIMIT 1`;
      await withClient(server.url, (client) => client.query(`SELECT ${how} FROM (${victims}) v`)).catch(
        () => undefined,
      );
    }
  })();
  await Promise.all(Array.from({ length: writers }, (_each, writer) => write(writer)));
  isOver = true;
  await breaking;
  const found = new Map<string, number>();
  for await (const { records } of direct.read(ref))
    for (const { record } of records) {
      const text = (record["message"] as { readonly content: string }).content;
      found.set(text, (found.get(text) ?? 0) + 1);
    }
  counts.lost = acknowledged.filter((text) => !found.has(text)).length;
  counts.twice = [...found.values()].filter((times) => times > 1).length;
  await direct.close();
  await proxy.close();
  return counts;
}

if (process.argv[1] === import.meta.filename) {
  const [appends = "1000", seed = "1"] = process.argv.slice(2);
  const server = await startPostgres();
  if ("unavailable" in server) throw new Error(server.unavailable);
  const counts = await soakKeyedAppends(server, {
    appends: Number(appends),
    kills: Math.ceil(Number(appends) / 250),
    unknown: 1,
    replayed: 1,
    seed: Number(seed),
  });
  await server.stop();
  process.stdout.write(`${JSON.stringify(counts)}\n`);
  process.exitCode = counts.lost + counts.twice + counts.falselyNotApplied === 0 ? 0 : 1;
}
