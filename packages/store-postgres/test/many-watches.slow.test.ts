import { setTimeout as pause } from "node:timers/promises";
import { hasErrorCode, type SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore, type PostgresStoreOptions } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { newSchema } from "./store-under-test.ts";
import { startProxy, type TcpProxy } from "./tcp-proxy.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
/** More than may wait for a connection, more than begin with one statement. */
const count = testSize({ short: 600, long: 10_000 });
const refOf = (index: number): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:w:${index}` });
const said = { type: "message", message: { role: "user", content: "hi" } };

/** A pool through the proxy that notes every statement. */
function countedPool(port: number): { readonly pool: pg.Pool; readonly asked: string[] } {
  const through = new URL(url);
  through.hostname = "127.0.0.1";
  through.port = String(port);
  const pool = new pg.Pool({ connectionString: through.href, max: 4 });
  pool.on("error", () => undefined);
  const asked: string[] = [];
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    Object.assign(client, {
      query: (...given: unknown[]) => (asked.push((given[0] as { text?: string }).text ?? ""), query(...given)),
    });
  });
  return { pool, asked };
}

interface Watching {
  readonly seen: Map<number, number[]>;
  readonly errors: Map<number, unknown>;
  readonly all: Promise<unknown>;
}

function watchAll(store: PostgresStore, signalOf: (index: number) => AbortSignal): Watching {
  const seen = new Map<number, number[]>();
  const errors = new Map<number, unknown>();
  const watches = Array.from({ length: count }, async (_, index) => {
    const had: number[] = [];
    seen.set(index, had);
    try {
      for await (const { records } of store.watch.watch(refOf(index), { afterSeq: 0, signal: signalOf(index) }))
        had.push(...records.map(({ seq }) => seq));
    } catch (error) {
      errors.set(index, error);
    }
  });
  return { seen, errors, all: Promise.all(watches) };
}

async function settled(asked: readonly string[]): Promise<void> {
  for (let before = -Infinity; asked.length - before > 3;) {
    before = asked.length;
    await pause(2500);
  }
}

const reads = (asked: readonly string[]): number => asked.filter((sql) => sql.includes("read_page")).length;

describe.skipIf("unavailable" in place)("many watches of one handle", { timeout: 240_000 }, () => {
  const schema = newSchema();
  let writer: PostgresStore;
  let proxy: TcpProxy;
  const withRecords = new Set(Array.from({ length: 20 }, (_, index) => index * 7));

  beforeAll(async () => {
    proxy = await startProxy(Number(new URL(url).port));
    writer = createPostgresStore({ url, schema, partitions: 2 });
    for (let from = 0; from < count; from += 50)
      await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          writer.save(
            refOf(from + index),
            { sessionId: `s${from + index}` },
            { ifRevision: null, durability: "process" },
          ),
        ),
      );
    for (const index of withRecords) await writer.append(refOf(index), [said, said]);
  }, 240_000);

  afterAll(async () => {
    await writer.close();
    await proxy.close();
  });

  const opened = (
    options: Partial<PostgresStoreOptions>,
  ): { readonly store: PostgresStore; readonly asked: string[]; close(): Promise<void> } => {
    const { pool, asked } = countedPool(proxy.port);
    const store = createPostgresStore({ pool, schema, pollMs: 1000, ...options });
    const close = async (): Promise<void> => {
      await store.close();
      await pool.end();
    };
    return { store, asked, close };
  };

  it("begin with a few statements, live on when every connection is cut, and read only what is new", async () => {
    const { store, asked, close } = opened({});
    await store.load(refOf(0));
    asked.length = 0;
    const controller = new AbortController();
    const { seen, errors, all } = watchAll(store, () => controller.signal);
    await settled(asked);
    // The sessions with records, the few that found a free turn, and one batch for every 2,000.
    expect(reads(asked)).toBeLessThanOrEqual(withRecords.size + 20);
    expect(asked.filter((sql) => sql.includes("ORDINALITY")).length).toBe(Math.ceil((count - 3) / 2000));
    expect([...seen].filter(([, seqs]) => seqs.length === 2).map(([index]) => index)).toEqual([...withRecords]);

    const atCut = asked.length;
    for (let cut = 0; cut < 5; cut++) {
      proxy.cutAll();
      await pause(300);
    }
    await pause(3000);
    expect(reads(asked.slice(atCut))).toBe(0);
    expect(asked.length - atCut).toBeLessThanOrEqual(40);
    expect(errors.size).toBe(0);

    const atWrite = asked.length;
    const written = [1, 2, Math.trunc(count / 2), count - 1];
    for (const index of written) await writer.append(refOf(index), [said]);
    await expect.poll(() => written.filter((index) => seen.get(index)?.length === 1).length).toBe(written.length);
    expect(reads(asked.slice(atWrite))).toBeLessThanOrEqual(written.length * 2);

    const purged = [3, 4, 5].map(refOf);
    for (const ref of purged) await writer.remove(ref, { purge: true });
    await expect.poll(() => errors.size).toBe(3);
    expect([3, 4, 5].every((index) => hasErrorCode(errors.get(index), "SESSION_NOT_FOUND"))).toBe(true);
    controller.abort();
    await all;
    await close();
    for (const index of [3, 4, 5])
      await writer.save(refOf(index), { sessionId: `s${index}` }, { ifRevision: null, durability: "process" });
  });

  it("each end with their own signal, while they begin too", async () => {
    const { store, asked, close } = opened({});
    const [first, second] = [new AbortController(), new AbortController()];
    const { errors, all } = watchAll(store, (index) => (index % 2 === 0 ? first.signal : second.signal));
    await pause(5);
    first.abort();
    await settled(asked);
    const before = asked.length;
    second.abort();
    await all;
    expect(errors.size).toBe(0);
    await pause(2500);
    // Nobody is left to look for.
    expect(asked.length - before).toBeLessThanOrEqual(1);
    await close();
  });

  it("end with STORE_CLOSED when the handle is closed while they begin, without a statement each", async () => {
    for (const afterMs of [0, 1, 30, 200]) {
      const { store, asked, close } = opened({});
      const { errors, all } = watchAll(store, () => new AbortController().signal);
      await pause(afterMs);
      await close();
      await all;
      expect(errors.size).toBe(count);
      expect([...errors.values()].every((error) => hasErrorCode(error, "STORE_CLOSED"))).toBe(true);
      expect(asked.length).toBeLessThan(200);
    }
  });

  it("all end with one error when the server stays away, without asking for each", async () => {
    const own = await startProxy(Number(new URL(url).port));
    const { pool, asked } = countedPool(own.port);
    const store = createPostgresStore({ pool, schema, pollMs: 1000, timeoutMs: 3000, connectTimeoutMs: 1000 });
    const { errors, all } = watchAll(store, () => new AbortController().signal);
    await settled(asked);
    expect(errors.size).toBe(0);
    let connects = 0;
    const connect = pool.connect.bind(pool);
    pool.connect = (() => ((connects += 1), connect())) as typeof pool.connect;
    await own.close();
    await all;
    expect(errors.size).toBe(count);
    expect([...errors.values()].every((error) => hasErrorCode(error, "STORE_UNREACHABLE"))).toBe(true);
    expect(connects).toBeLessThan(200);
    await store.close();
    await pool.end();
  });
});
