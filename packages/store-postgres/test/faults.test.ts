import { setTimeout as sleep } from "node:timers/promises";
import type { SessionRef } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type PostgresServer } from "./postgres-server.ts";
import { newSchema, withClient } from "./store-under-test.ts";
import { startProxy, type Fault, type TcpProxy } from "./tcp-proxy.ts";

const started = await startPostgres();
const isHere = !("unavailable" in started);
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:faults" };

async function textsOf(store: PostgresStore): Promise<string[]> {
  const texts: string[] = [];
  for await (const { records } of store.read(ref))
    texts.push(...records.map(({ record }) => String((record["message"] as { readonly content: string }).content)));
  return texts;
}

function saying(text: string): { readonly type: string; readonly message: object } {
  return { type: "message", message: { role: "user", content: text } };
}

/** The error, or null, and how long it took. */
async function timed(work: Promise<unknown>): Promise<{ readonly error: unknown; readonly tookMs: number }> {
  const startedMs = performance.now();
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  return { error, tookMs: performance.now() - startedMs };
}

describe.skipIf(!isHere)(
  `a network and a server that fail${isHere ? "" : `: needs PostgreSQL, ${started.unavailable}`}`,
  () => {
    const server = started as PostgresServer;
    let proxy: TcpProxy;
    let direct: PostgresStore;
    const schema = newSchema();
    const timeoutMs = 1500;
    const through = (): string => server.url.replace(/:\d+\/postgres$/, `:${proxy.port}/postgres`);

    beforeAll(async () => {
      proxy = await startProxy(server.port);
      direct = createPostgresStore({ url: server.url, schema, partitions: 2 });
      await direct.save(ref, { sessionId: "faults" }, { ifRevision: null });
    });

    afterAll(async () => {
      await direct.close();
      await proxy.close();
      await server.stop();
    });

    const faults: readonly (readonly [string, Fault])[] = [
      ["cut before the statement", "cut-before"],
      ["cut after its first byte", { cutAfterBytes: 1 }],
      ["cut in its middle", { cutAfterBytes: 200 }],
      ["cut before its last byte", { cutAfterBytes: 600 }],
      ["cut before the answer", "cut-answer"],
      ["half-closed", "half-close"],
      ["silence instead of an answer", "silence"],
    ];

    it.each(faults)("%s: a typed error in bounded time, one copy after the retry with the key", async (name, fault) => {
      await using store = createPostgresStore({ url: through(), schema, timeoutMs, maxConnections: 2 });
      expect((await store.load(ref))?.sessionId).toBe("faults");
      const before = proxy.struck();
      proxy.fault = fault;
      const append = (): Promise<unknown> => store.append(ref, [saying(name)], { idempotencyKey: name });
      const { error, tookMs } = await timed(append());
      expect(proxy.struck()).toBe(before + 1);
      expect(ThroughlineError.isInstance(error) && [error.code, error.outcome, error.retryable]).toEqual([
        "STORE_UNREACHABLE",
        "unknown",
        true,
      ]);
      // Without a limit it would wait for the network's own, which is minutes.
      expect(tookMs).toBeLessThan(timeoutMs + 15_000);
      await append();
      expect((await textsOf(direct)).filter((text) => text === name)).toEqual([name]);
    });

    it("a slow network costs time and nothing else", { tags: ["slow"] }, async () => {
      await using store = createPostgresStore({ url: through(), schema, timeoutMs });
      proxy.delayMs = 40;
      try {
        for (const each of ["slow 1", "slow 2"]) await store.append(ref, [saying(each)]);
      } finally {
        proxy.delayMs = 0;
      }
      expect((await textsOf(store)).slice(-2)).toEqual(["slow 1", "slow 2"]);
    });

    it(
      "a network slower than the deadline ends in an error that says so, and reading goes on afterwards",
      { tags: ["slow"] },
      async () => {
        await using store = createPostgresStore({ url: through(), schema, timeoutMs: 800 });
        await store.load(ref);
        proxy.delayMs = 2000;
        try {
          const error: unknown = await store.load(ref).catch((failure: unknown) => failure);
          expect(ThroughlineError.isInstance(error) && error.code).toBe("STORE_UNREACHABLE");
        } finally {
          proxy.delayMs = 0;
        }
        expect((await store.load(ref))?.sessionId).toBe("faults");
      },
    );

    it("reads whose connection is cut are made again within the deadline", async () => {
      await using store = createPostgresStore({ url: through(), schema, timeoutMs });
      await store.load(ref);
      const reading = Promise.all(Array.from({ length: 20 }, () => store.load(ref)));
      proxy.cutAll();
      expect((await reading).every((state) => state?.sessionId === "faults")).toBe(true);
    });

    it(
      "more waiting operations than allowed are refused at once, with nothing applied",
      { tags: ["slow"] },
      async () => {
        await using store = createPostgresStore({
          url: through(),
          schema,
          timeoutMs,
          maxConnections: 1,
          maxWaiting: 3,
        });
        await store.load(ref);
        proxy.delayMs = 30;
        const settled = await Promise.allSettled(
          Array.from({ length: 20 }, () => store.append(ref, [saying("crowd")])),
        );
        proxy.delayMs = 0;
        const refused = settled.flatMap((each) =>
          each.status === "rejected" ? [each.reason as ThroughlineError] : [],
        );
        expect(refused.length).toBeGreaterThan(0);
        expect(refused.every(({ code, outcome }) => code === "STORE_OVERLOADED" && outcome === "not-applied")).toBe(
          true,
        );
        const crowd = (await textsOf(store)).filter((text) => text === "crowd");
        expect(crowd.length).toBe(settled.length - refused.length);
      },
    );

    it(
      "the server killed with -9 under writers and started again: nothing acknowledged lost, nothing twice",
      { tags: ["slow"], timeout: 60_000 },
      async () => {
        await using store = createPostgresStore({ url: server.url, schema, timeoutMs: 20_000, maxConnections: 4 });
        const acknowledged: string[] = [];
        const errors: unknown[] = [];
        let isOver = false;
        let beforeTheLastStart = 0;
        const writers = Array.from({ length: 4 }, async (_each, writer) => {
          for (let turn = 0; !isOver; turn++) {
            const text = `killed ${writer}-${turn}`;
            for (;;) {
              try {
                await store.append(ref, [saying(text)], { idempotencyKey: text });
                acknowledged.push(text);
                break;
              } catch (error) {
                errors.push(error);
                if (!ThroughlineError.isInstance(error) || !error.retryable) throw error;
              }
            }
          }
        });
        for (let round = 0; round < 2; round++) {
          await sleep(400);
          await server.kill();
          await sleep(200);
          beforeTheLastStart = acknowledged.length;
          await server.start();
        }
        await sleep(400);
        isOver = true;
        await Promise.all(writers);
        const texts = (await textsOf(store)).filter((text) => text.startsWith("killed"));
        expect(new Set(texts).size).toBe(texts.length);
        expect(acknowledged.filter((text) => !texts.includes(text))).toEqual([]);
        // Who was waiting for a connection when the server went saw no error at all.
        expect(acknowledged.length).toBeGreaterThan(beforeTheLastStart);
        expect(beforeTheLastStart).toBeGreaterThan(0);
        expect(errors.every((error) => ThroughlineError.isInstance(error))).toBe(true);
      },
    );

    it(
      "a server that comes back with fewer connections than the store would take serves all the same",
      { tags: ["slow"], timeout: 60_000 },
      async () => {
        const alter = (text: string): Promise<unknown> =>
          withClient(server.url, (client) => client.query(`ALTER SYSTEM ${text}`));
        const restart = async (): Promise<void> => {
          await server.kill();
          await server.start();
        };
        await using store = createPostgresStore({ url: server.url, schema, timeoutMs: 20_000, maxConnections: 10 });
        const appendAll = (name: string): Promise<unknown> =>
          Promise.all(
            Array.from({ length: 30 }, (_each, index) =>
              store.append(ref, [saying(`${name} ${index}`)], { idempotencyKey: `${name} ${index}` }),
            ),
          );
        await appendAll("before");
        await alter("SET max_connections = 6");
        await restart();
        // For the next start; once the store is back there is no connection left for this.
        await alter("RESET max_connections");
        await appendAll("few");
        await restart();
        await appendAll("after");
        const texts = await textsOf(store);
        for (const name of ["before", "few", "after"])
          expect(texts.filter((text) => text.startsWith(`${name} `))).toHaveLength(30);
      },
    );

    it(
      "a watch goes on through a cut connection and a killed server, without a gap and without a record twice",
      { tags: ["slow"], timeout: 60_000 },
      async () => {
        await using store = createPostgresStore({ url: through(), schema, timeoutMs: 10_000, pollMs: 300 });
        const from = (await store.load(ref))?.head.lastSeq ?? 0;
        const controller = new AbortController();
        const seen: number[] = [];
        const watching = (async (): Promise<void> => {
          for await (const { records } of store.watch?.watch(ref, { afterSeq: from, signal: controller.signal }) ?? [])
            seen.push(...records.map(({ seq }) => seq));
        })();
        await direct.append(ref, [saying("watched")]);
        proxy.cutAll();
        await direct.append(ref, [saying("watched")]);
        await server.kill();
        await server.start();
        await direct.append(ref, [saying("watched")]);
        for (let waited = 0; seen.length < 3 && waited < 500; waited++) await sleep(20);
        controller.abort();
        await watching;
        expect(seen).toEqual([from + 1, from + 2, from + 3]);
      },
    );
  },
);
