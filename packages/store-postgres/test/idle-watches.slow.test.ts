import { setTimeout as pause } from "node:timers/promises";
import type { SessionRef } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { newSchema } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const refOf = (index: number): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:w:${index}` });

describe.skipIf("unavailable" in place)("watches of many sessions", () => {
  it(
    "ask one statement together, once in pollMs, and hear of what another handle writes",
    { timeout: 120_000 },
    async () => {
      const schema = newSchema();
      const pool = new pg.Pool({ connectionString: url, max: 4 });
      const asked: string[] = [];
      const connect = pool.connect.bind(pool);
      const counted = new WeakSet<object>();
      pool.connect = (async () => {
        const client = await connect();
        if (counted.has(client)) return client;
        counted.add(client);
        const query = client.query.bind(client) as (...given: unknown[]) => unknown;
        return Object.assign(client, {
          query: (...given: unknown[]) => (
            asked.push((given[0] as { text?: string }).text ?? String(given[0])),
            query(...given)
          ),
        });
      }) as typeof pool.connect;
      const count = 150;
      await using writer = createPostgresStore({ url, schema, partitions: 2 });
      for (let index = 0; index < count; index++)
        await writer.save(refOf(index), { sessionId: `s${index}` }, { ifRevision: null, durability: "process" });
      for (const notify of [true, false]) {
        const store = createPostgresStore({ pool, schema, notify, pollMs: 200 });
        const controller = new AbortController();
        const seen: string[] = [];
        const watches = Array.from({ length: count }, async (_, index) => {
          const from = (await store.load(refOf(index)))?.head.lastSeq ?? 0;
          for await (const { records } of store.watch?.watch(refOf(index), {
            afterSeq: from,
            signal: controller.signal,
          }) ?? [])
            seen.push(...records.map(() => `${index}`));
        });
        // Until all have begun: then a look in pollMs, and one that was due.
        let from = -Infinity;
        for (let waited = 0; asked.length - from > 7 && waited < 50; waited++) {
          from = asked.length;
          await pause(1200);
        }
        expect(asked.length - from, `notify ${notify}`).toBeLessThanOrEqual(7);
        expect(asked.slice(from).every((sql) => sql.includes("last_seq"))).toBe(true);
        for (const index of [0, 77, 149])
          await writer.append(refOf(index), [{ type: "message", message: { role: "user", content: "hi" } }]);
        for (let waited = 0; seen.length < 3 && waited < 500; waited++) await pause(20);
        expect(seen.toSorted()).toEqual(["0", "149", "77"]);
        controller.abort();
        await Promise.all(watches);
        await store.close();
      }
      await pool.end();
    },
  );
});
