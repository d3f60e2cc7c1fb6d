import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startHolder } from "@throughline/store-conformance/internal";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { openSecured } from "./secured-store.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const scriptPath = join(import.meta.dirname, "hold-agent-lock.ts");
const main = { namespace: "", agentId: "main" };
const patient = { timeoutMs: 20_000, pollIntervalMs: 10 };
const atOnce = { timeoutMs: 0, pollIntervalMs: 10 };

function lock(store: PostgresStore): NonNullable<PostgresStore["exclusively"]> {
  if (store.exclusively === undefined) throw new Error("this store has the lock");
  return store.exclusively.bind(store);
}

/** Takes the lock; it is kept until `end` is called. */
async function hold(
  store: PostgresStore,
  agent: typeof main = main,
): Promise<{ readonly end: () => void; readonly done: Promise<void> }> {
  const [begun, ending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const done = lock(store)(agent, () => (begun.resolve(), ending.promise), patient);
  await Promise.race([begun.promise, done]);
  return { end: () => ending.resolve(), done };
}

/** The lock of the agent main, among those of other stores and tests; `what` is selected of it. */
async function locksOf(schema: string, what: string): Promise<number> {
  const key = JSON.stringify(["throughline", `"${schema}"`, "", "main"]);
  const { rowCount } = await withClient(url, (client) =>
    client.query(
      `SELECT ${what} FROM pg_locks WHERE locktype = 'advisory' AND granted
       AND (classid::bigint << 32 | objid::bigint) = hashtextextended($1::text COLLATE "C", 0)`,
      [key],
    ),
  );
  return rowCount ?? 0;
}

const refused = { code: "STORE_LOCKED", outcome: "not-applied" };
const work = (): Promise<string> => Promise.resolve("in");

describe.skipIf(url === "")(
  `the lock of an agent${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("is free as soon as the process that held it is killed", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema });
      await store.save({ ...main, key: "agent:main:a" }, { sessionId: "a" }, { ifRevision: null });
      for (let round = 0; round < testSize({ short: 3, long: 50 }); round++) {
        const holder = await startHolder({ scriptPath, args: [url, "", "main", schema] });
        await expect(lock(store)(main, work, { timeoutMs: 50, pollIntervalMs: 10 })).rejects.toMatchObject(refused);
        // What is stored is free.
        await store.append({ ...main, key: "agent:main:a" }, [{ type: "custom", customType: "x" }]);
        let enteredMs = 0;
        const waiting = lock(store)(main, async () => void (enteredMs = performance.now()), patient);
        await sleep(30);
        expect(enteredMs).toBe(0);
        await holder.kill();
        const killedMs = performance.now();
        await waiting;
        // A lease would last for 30 s.
        expect(enteredMs - killedMs).toBeLessThan(20_000);
      }
    });

    it("is one of its schema: the same agent of another store does not wait", async () => {
      await using store = createPostgresStore({ url, schema: newSchema() });
      await using other = createPostgresStore({ url, schema: newSchema() });
      const holder = await hold(store);
      expect(await lock(other)(main, work, atOnce)).toBe("in");
      await expect(lock(store)(main, work, atOnce)).rejects.toMatchObject(refused);
      holder.end();
      await holder.done;
    });

    it("excludes the owner and the role of a secured store from each other, and needs no right on a table", async () => {
      const fixture = await openSecured(url);
      const role = createPostgresStore({ url: fixture.roleUrl, schema: fixture.schema, migrate: false, notify: false });
      const byRole = await hold(role);
      await expect(lock(fixture.owner)(main, work, atOnce)).rejects.toMatchObject(refused);
      expect(await lock(fixture.owner)({ namespace: "", agentId: "other" }, work, atOnce)).toBe("in");
      byRole.end();
      await byRole.done;
      const byOwner = await hold(fixture.owner);
      await expect(lock(role)(main, work, atOnce)).rejects.toMatchObject(refused);
      byOwner.end();
      await byOwner.done;
      await role.close();
      await fixture.dispose();
    });

    it("that ended with its connection while the work ran is LEASE_LOST, and an error of the work stays what it is", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema });
      const endHolders = (): Promise<number> => locksOf(schema, "pg_terminate_backend(pid)");
      const holder = await hold(store);
      expect(await endHolders()).toBe(1);
      expect(await lock(store)(main, work, patient)).toBe("in");
      holder.end();
      await expect(holder.done).rejects.toMatchObject({ code: "LEASE_LOST", outcome: "unknown" });
      const mine = new Error("mine");
      const failing = lock(store)(
        main,
        async () => {
          await endHolders();
          throw mine;
        },
        patient,
      );
      await expect(failing).rejects.toBe(mine);
      expect(await lock(store)(main, work, patient)).toBe("in");
    });

    it("outlasts the server's limit on idle transactions", async () => {
      const limited = new URL(url);
      limited.searchParams.set("options", "-c idle_in_transaction_session_timeout=100");
      const schema = newSchema();
      // A busy machine may pause between two statements that create the schema.
      await using maker = createPostgresStore({ url, schema });
      await maker.list();
      await using store = createPostgresStore({ url: limited.href, schema });
      const holder = await hold(store);
      await sleep(600);
      await expect(lock(store)(main, work, atOnce)).rejects.toMatchObject(refused);
      holder.end();
      await holder.done;
    });

    it("leaves no transaction and no lock behind, and does not keep a store from being closed", async () => {
      const schema = newSchema();
      const store = createPostgresStore({ url, schema });
      expect(await lock(store)(main, () => locksOf(schema, "pid"), patient)).toBe(1);
      expect(await locksOf(schema, "pid")).toBe(0);
      await lock(store)(main, () => store.close(), patient);
      await expect(lock(store)(main, work, patient)).rejects.toMatchObject({ code: "STORE_CLOSED" });
    });

    it("works on a lent pool, which keeps its connections; one of a single connection has no lock", async () => {
      const pool = new pg.Pool({ connectionString: url, max: 3 });
      const single = new pg.Pool({ connectionString: url, max: 1 });
      const schema = newSchema();
      const store = createPostgresStore({ pool, schema, notify: false });
      const holder = await hold(store);
      await expect(lock(store)(main, work, atOnce)).rejects.toMatchObject(refused);
      holder.end();
      await holder.done;
      expect(pool.idleCount).toBe(pool.totalCount);
      const alone = createPostgresStore({ pool: single, schema, notify: false });
      expect(alone.exclusively).toBeUndefined();
      await store.close();
      await alone.close();
      await Promise.all([pool.end(), single.end()]);
    });
  },
);
