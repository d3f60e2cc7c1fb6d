import { setTimeout as sleep } from "node:timers/promises";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { ThroughlineError, type SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const draft = { type: "message", message: { role: "user", content: "hello" } };

async function refusalOf(work: Promise<unknown>): Promise<readonly unknown[]> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  return ThroughlineError.isInstance(error) ? [error.code, error.outcome] : [error];
}

async function all(pages: AsyncIterable<unknown> | undefined): Promise<number> {
  let count = 0;
  for await (const _page of pages ?? []) count += 1;
  return count;
}

describe.skipIf("unavailable" in place)(
  `waiting${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    let schema = "";
    let store: PostgresStore;

    beforeEach(async () => {
      schema = newSchema();
      // A loaded machine takes longer to make a schema than the operations below may wait.
      await using maker = createPostgresStore({ url, schema, partitions: 2, maxConnections: 1 });
      await maker.save(ref, { sessionId: "one" }, { ifRevision: null });
      store = createPostgresStore({ url, schema, maxConnections: 1, timeoutMs: 2000 });
      await store.load(ref);
    });

    afterEach(() => store.close());

    /** While nobody gets at the tables, and the store's only connection waits for them. */
    function whileLocked<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> {
      return withClient(url, async (client) => {
        await client.query(`BEGIN; LOCK TABLE "${schema}".sessions, "${schema}".search_state IN ACCESS EXCLUSIVE MODE`);
        return work(client);
      });
    }

    it("ends with the signal: of writes for a connection, of reads for the answer too, of an opening", async () => {
      await whileLocked(async () => {
        await using unopened = createPostgresStore({ url, schema, maxConnections: 1 });
        const { signal, abort } = controlled();
        const works = [
          refusalOf(store.load(ref, { signal })),
          refusalOf(store.append(ref, [draft], { signal })),
          refusalOf(store.list({ signal })),
          refusalOf(store.readWindow(ref, { signal })),
          refusalOf(all(store.read(ref, { signal }))),
          refusalOf(all(store.search?.search({ text: "hello", signal }))),
          refusalOf(unopened.load(ref, { signal })),
        ];
        const watched = all(store.watch.watch(ref, { afterSeq: 0, signal }));
        await sleep(50);
        abort();
        for (const each of await Promise.all(works)) expect(each).toEqual(["ABORTED", "not-applied"]);
        expect(await watched).toBe(0);
      });
      expect((await store.load(ref))?.head.lastSeq).toBe(0);
    });

    it("for a connection that others have is said as that, not as a server that is not there", async () => {
      await store.close();
      store = createPostgresStore({ url, schema, maxConnections: 1, timeoutMs: 1500, connectTimeoutMs: 1000 });
      await store.load(ref);
      await whileLocked(async () => {
        const loading = refusalOf(store.load(ref));
        expect(await refusalOf(store.append(ref, [draft]))).toEqual(["STORE_OVERLOADED", "not-applied"]);
        expect((await loading)[0]).toBe("STORE_UNREACHABLE");
      });
    });

    it("for a server that says nothing takes no longer than it may to reach one", async () => {
      const sockets: Socket[] = [];
      const silent = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
      await new Promise((resolve) => silent.once("listening", resolve));
      const { port } = silent.address() as AddressInfo;
      await using far = createPostgresStore({ url: `postgres://ada@127.0.0.1:${port}/db`, connectTimeoutMs: 100 });
      const startedMs = performance.now();
      expect(await refusalOf(far.load(ref))).toEqual(["STORE_UNREACHABLE", "not-applied"]);
      // Without a limit of its own it would wait for the deadline of an operation, which is longer.
      expect(performance.now() - startedMs).toBeLessThan(5000);
      for (const socket of sockets) socket.destroy();
      silent.close();
    });

    it("of a watch leaves the only connection of a lent pool to others, and tells all the same", async () => {
      const pool = new pg.Pool({ connectionString: url, max: 1 });
      const lent = createPostgresStore({ pool, schema, timeoutMs: 1000, pollMs: 50 });
      const { signal, abort } = controlled();
      const watching = all(lent.watch.watch(ref, { afterSeq: 0, signal }));
      await sleep(150);
      expect((await lent.append(ref, [draft])).head.lastSeq).toBe(1);
      await sleep(150);
      abort();
      expect(await watching).toBe(1);
      await lent.close();
      await pool.end();
    });

    it("ends with the store, whoever waits for a connection then", async () => {
      await whileLocked(async (client) => {
        const loading = store.load(ref);
        const works = [
          refusalOf(store.list()),
          refusalOf(all(store.maintenance.verify({ full: true }))),
          refusalOf(all(store.search?.search({ text: "hello" }))),
          refusalOf(all(store.read(ref))),
        ];
        await sleep(50);
        const closing = store.close();
        await client.query("ROLLBACK");
        expect((await loading)?.sessionId).toBe("one");
        await closing;
        for (const each of await Promise.all(works))
          expect([[null], ["STORE_CLOSED", "not-applied"]]).toContainEqual(each);
      });
    });

    it("of a URL the server takes no connection for ends at once, with what to look at", async () => {
      const nobody = new URL(url);
      nobody.password = "";
      const secure = new URL(url);
      secure.searchParams.set("sslmode", "verify-full");
      const odd = new URL(url);
      odd.searchParams.set("options", "-c nonesuch=1");
      for (const [asked, code, remedy] of [
        [nobody, "STORE_NOT_FOUND", "password"],
        [secure, "STORE_UNREACHABLE", "TLS"],
        [odd, "STORE_UNREACHABLE", "URL"],
      ] as const) {
        await using refusedStore = createPostgresStore({ url: asked.href, schema });
        await expect(refusedStore.load(ref)).rejects.toMatchObject({
          code,
          remedy: expect.stringContaining(remedy) as string,
        });
      }
    });
  },
);

function controlled(): { readonly signal: AbortSignal; abort(): void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}
