import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresPool } from "@throughline/store-postgres";
import type { PostgresConnection } from "../src/connection-pool.ts";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { newSchema } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const draft = { type: "message", message: { role: "user", content: "Hello" } };

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** A pool that notes what signals were answered with, as long as anybody holds it. */
function notingPool(inner: pg.Pool, answers: WeakRef<object>[]): PostgresPool {
  const wrap = (client: pg.PoolClient): PostgresConnection => ({
    on: client.on.bind(client),
    off: client.off.bind(client),
    async query(query) {
      const result = await client.query(query);
      if (query.text.includes("pg_notify(")) answers.push(new WeakRef(result.rows));
      return result;
    },
    release: (error) => client.release(error),
  });
  return {
    get waitingCount() {
      return inner.waitingCount;
    },
    connect: async () => wrap(await inner.connect()),
  };
}

describe.skipIf(url === "")(
  `watching by NOTIFY${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("a watcher is told by NOTIFY also where the name of the schema is as long as it may be", async () => {
      const schema = newSchema().padEnd(63, "x");
      await using store = createPostgresStore({ url, schema, partitions: 2, pollMs: 60_000 });
      await using other = createPostgresStore({ url, schema, partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      const controller = new AbortController();
      const seen: number[] = [];
      const watching = (async (): Promise<void> => {
        for await (const { records } of store.watch.watch(ref, { afterSeq: 0, signal: controller.signal }))
          seen.push(...records.map(({ seq }) => seq));
      })();
      await expect
        .poll(async () => {
          await other.append(ref, [draft]);
          return seen.length;
        })
        .toBeGreaterThan(1);
      controller.abort();
      await watching;
    });

    it("a watcher is told by NOTIFY, with the session's number and nothing else", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2, pollMs: 60_000 });
      await using other = createPostgresStore({ url, schema, partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      const payloads: string[] = [];
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      client.on("notification", ({ payload = "" }) => payloads.push(payload));
      await client.query(`LISTEN "${schema}_grown"`);
      const controller = new AbortController();
      const seen: number[] = [];
      const watching = (async (): Promise<void> => {
        for await (const { records } of store.watch?.watch(ref, { afterSeq: 0, signal: controller.signal }) ?? [])
          seen.push(...records.map(({ seq }) => seq));
      })();
      await sleep(300);
      for (let turn = 0; turn < 5; turn++) await other.append(ref, [draft]);
      for (let waited = 0; seen.length < 5 && waited < 500; waited++) await sleep(10);
      controller.abort();
      await watching;
      expect(seen).toEqual([1, 2, 3, 4, 5]);
      await expect.poll(() => payloads.length).toBeGreaterThan(0);
      expect(payloads.every((payload) => /^\d+(,\d+)*$/.test(payload))).toBe(true);
      await client.end();
    });

    it("keeps nothing of a signal that was sent", async () => {
      const inner = new pg.Pool({ connectionString: url, max: 3 });
      const answers: WeakRef<object>[] = [];
      const store = createPostgresStore({ pool: notingPool(inner, answers), schema: newSchema(), partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      const sent = async (count: number): Promise<void> => {
        await store.append(ref, [draft]);
        await expect.poll(() => answers.length).toBeGreaterThanOrEqual(count);
      };
      for (let count = 1; count <= 5; count++) await sent(count);
      // What was sent last may still be under way.
      const held = (): number => {
        collectGarbage();
        return answers.slice(0, 4).filter((answer) => answer.deref() !== undefined).length;
      };
      await expect.poll(held).toBe(0);
      await store.close();
      await inner.end();
    });
  },
);
