import assert from "node:assert/strict";
import type pg from "pg";
import type { AppendDraft, Durability, SessionRef } from "../../packages/core/src/index.ts";
import { toColumns } from "./record-columns.ts";
import { median } from "./scenario.ts";
import type { ScenarioContext } from "./scenario.ts";
import { prepareDrafts, defaultStoreLimits } from "../../packages/core/src/store.ts";
import { systemClock, systemRecordIds } from "../../packages/core/src/node.ts";

const insertOnly: string = `
INSERT INTO control_records (session_no, seq, id, parent_id, type, side, timestamp, ts_ms, stored_at_ms, bytes, crc, rest, source)
SELECT $1::bigint, $2::bigint + r.place, r.id, r.parent_id, r.type, r.side, r.timestamp, r.ts_ms, 0, r.bytes, r.crc, r.rest, r.source
FROM unnest($3::text[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::bigint[], $9::int[], $10::bigint[],
  $11::text[], $12::bytea[]) WITH ORDINALITY
  AS r (id, parent_id, type, side, timestamp, ts_ms, bytes, crc, rest, source, place)`;

/** What the least statement would be that keeps a session row too: no rule of the contract is in it. */
const updateAndInsert: string = `
WITH updated AS (
  UPDATE control_sessions SET last_seq = last_seq + cardinality($3::text[]), updated_at_ms = updated_at_ms + 1
  WHERE session_no = $1 AND last_seq = $2
)${insertOnly}`;

/** One turn: what the user said, a tool call, its result, the answer, about 3 KB. */
function turn(): readonly AppendDraft[] {
  return [400, 300, 1600, 700].map((length) => ({
    type: "message",
    message: { role: "user", content: "wort ".repeat(length / 5) },
  }));
}

interface Contestant {
  readonly name: string;
  run(connection: number): Promise<void>;
}

/** Turns a second of the store against raw statements, all in one run and in turns, so that the machine's mood is shared. */
export async function throughputScenario(
  { stores, quick, createSession }: ScenarioContext,
  clients: readonly pg.Client[],
): Promise<readonly string[]> {
  const lines: string[] = [];
  const rounds = quick ? 3 : 5;
  const roundMs = quick ? 100 : 500;
  for (const connections of [1, 8]) {
    const sessions: SessionRef[] = [];
    for (let index = 0; index < connections; index++) sessions.push(await createSession());
    for (const durability of ["disk", "process"] as const) {
      for (const client of clients)
        await client.query(`SET synchronous_commit = ${durability === "disk" ? "on" : "off"}`);
      const contestants: readonly Contestant[] = [
        await control("insert", insertOnly, clients, `insert ${connections} ${durability}`),
        await control("update+insert", updateAndInsert, clients, `both ${connections} ${durability}`),
        appends("append", stores, sessions, durability, false),
        appends("append, keyed, entry", stores, sessions, durability, true),
      ];
      const rates = contestants.map((): number[] => []);
      for (let round = 0; round <= rounds; round++) {
        for (const [index, contestant] of contestants.entries()) {
          const rate = await measure(contestant, connections, roundMs);
          // The first round fills caches and plans.
          if (round > 0) rates[index]?.push(rate);
        }
      }
      lines.push(
        `turns/s, ${connections} connection${connections === 1 ? "" : "s"}, ${durability}: ${contestants
          .map((contestant, index) =>
            describeRates(contestant.name, rates[index] ?? [], rates[0] ?? [], rates[1] ?? []),
          )
          .join("; ")}`,
      );
    }
  }
  for (const client of clients) await client.query("RESET synchronous_commit");
  return lines;
}

/** Ratios are medians of the rounds' own ratios: time a turn takes against the raw statements of the same round. */
function describeRates(
  name: string,
  rates: readonly number[],
  inserts: readonly number[],
  both: readonly number[],
): string {
  const against = (control: readonly number[]): string =>
    median(rates.map((rate, round) => (control[round] ?? Number.NaN) / rate)).toFixed(2);
  const ratios = name.startsWith("append") ? ` (${against(inserts)} x insert, ${against(both)} x update+insert)` : "";
  return `${name} ${Math.round(median(rates))}${ratios}`;
}

async function measure(contestant: Contestant, connections: number, roundMs: number): Promise<number> {
  let turns = 0;
  const startMs = performance.now();
  const untilMs = startMs + roundMs;
  await Promise.all(
    Array.from({ length: connections }, async (_, connection) => {
      while (performance.now() < untilMs) {
        await contestant.run(connection);
        turns += 1;
      }
    }),
  );
  return turns / ((performance.now() - startMs) / 1000);
}

function appends(
  name: string,
  stores: ScenarioContext["stores"],
  sessions: readonly SessionRef[],
  durability: Durability,
  isFull: boolean,
): Contestant {
  let count = 0;
  return {
    name,
    async run(connection) {
      const [store, ref] = [stores[connection], sessions[connection]];
      assert(store !== undefined && ref !== undefined);
      count += 1;
      const extra = isFull
        ? { idempotencyKey: `${durability} ${count}`, entry: { totalTokens: count, updatedAt: Date.now() } }
        : {};
      await store.append(ref, turn(), { durability, ...extra });
    },
  };
}

async function control(name: string, text: string, clients: readonly pg.Client[], label: string): Promise<Contestant> {
  const numbers = await Promise.all(
    clients.map(async (client, index) => {
      const result = await client.query<{ session_no: string }>(
        `INSERT INTO control_sessions SELECT '', 'control', $1, '', nextval('session_numbers'), $1, 1, '{}', '{}', 0, NULL, NULL, 0,
          NULL, NULL, NULL, 0, 0, 0 RETURNING session_no`,
        [`${label} ${index}`],
      );
      return Number(result.rows[0]?.session_no);
    }),
  );
  const lastSeqs = numbers.map(() => 0);
  return {
    name,
    async run(connection) {
      const client = clients[connection];
      assert(client !== undefined);
      // The same preparation as the store's, so that only the statements differ.
      const prepared = prepareDrafts(turn(), { ids: systemRecordIds, clock: systemClock, limits: defaultStoreLimits });
      const columns = toColumns(prepared);
      const lastSeq = lastSeqs[connection] ?? 0;
      const { ids, parentIds, types, sides, timestamps, tsMs, bytes, crcs, rests, sources } = columns;
      const values = [
        numbers[connection],
        lastSeq,
        ids,
        parentIds,
        types,
        sides,
        timestamps,
        tsMs,
        bytes,
        crcs,
        rests,
        sources,
      ];
      await client.query({ name, text, values });
      lastSeqs[connection] = lastSeq + ids.length;
    },
  };
}
