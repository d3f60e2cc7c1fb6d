import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import type { SessionRef } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type PostgresServer } from "./postgres-server.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const started = await startPostgres();
const isHere = !("unavailable" in started);
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const other: SessionRef = { ...ref, key: "agent:main:other" };
const said = { type: "message", message: { role: "user", content: "said" } };
const until = { leaseUntilMs: 4_000_000_000_000 };

/** Everything a store acknowledges, in an order in which each finds what it needs. */
const writes: readonly (readonly [string, (store: PostgresStore) => Promise<unknown>])[] = [
  ["save, a new session", (store) => store.save(ref, { sessionId: "one" }, { ifRevision: null })],
  ["save, with its beginning", (store) => store.save(other, { sessionId: "o" }, { ifRevision: null, createdAtMs: 1 })],
  ["save, an entry", (store) => store.save(ref, { sessionId: "one", label: "x" }, { ifRevision: 1 })],
  ["append", (store) => store.append(ref, [{ ...said, id: "first" }])],
  ["append, without ids", (store) => store.append(ref, [said])],
  [
    "append, that expects a head",
    (store) => store.append(ref, [said], { turn: { action: "open", turnId: "t", owner: "o", fence: 1, ...until } }),
  ],
  ["append, a turn that ends", (store) => store.append(ref, [said], { turn: { action: "close", fence: 1 } })],
  ["append, with a key", (store) => store.append(ref, [said], { idempotencyKey: "k" })],
  ["append, the same again", (store) => store.append(ref, [said], { idempotencyKey: "k" })],
  [
    "append, the same again for less",
    (store) => store.append(ref, [said], { idempotencyKey: "k", durability: "process" }),
  ],
  ["redact", (store) => store.redact(ref, ["first"], { reason: "test" })],
  ["fork", (store) => store.fork.fork(ref, { ...ref, key: "agent:main:fork" }, { sessionId: "fork" })],
  ["move", (store) => store.move(other, { kind: "rename", key: "agent:main:moved" })],
  ["remove", (store) => store.remove({ ...ref, key: "agent:main:moved" })],
  ["remove, for good", (store) => store.remove({ ...ref, key: "agent:main:fork" }, { purge: true })],
];

describe.skipIf(!isHere)(
  `what is acknowledged is on the server's disk${isHere ? "" : `: needs PostgreSQL, ${started.unavailable}`}`,
  () => {
    const server = started as PostgresServer;
    const sql = (text: string): Promise<unknown> => withClient(server.url, (client) => client.query(text));
    let observer: pg.Client;

    const withOption = (option: string): string => {
      const url = new URL(server.url);
      url.searchParams.set("options", `-c ${option}`);
      return url.href;
    };

    beforeAll(async () => {
      // Nobody flushes in the background what a commit did not wait for.
      await sql("ALTER SYSTEM SET wal_writer_delay = '10s'");
      await sql("ALTER SYSTEM SET autovacuum = off");
      await sql("SELECT pg_reload_conf()");
    });
    beforeEach(async () => {
      observer = new pg.Client({ connectionString: server.url });
      observer.on("error", () => undefined);
      await observer.connect();
    });
    afterEach(async () => {
      await observer.end();
      await sql("ALTER SYSTEM RESET synchronous_standby_names");
      await sql("SELECT pg_reload_conf()");
    });
    afterAll(() => server.stop());

    /** Whether the write's part of the log had reached the disk when it was acknowledged. */
    async function isFlushed(write: () => Promise<unknown>): Promise<boolean> {
      const { rows } = await observer.query<{ at: string }>("SELECT pg_current_wal_insert_lsn()::text AS at");
      await write();
      const flushed = await observer.query<{ is: boolean }>("SELECT pg_current_wal_flush_lsn() > $1::pg_lsn AS is", [
        rows[0]?.at,
      ]);
      return flushed.rows[0]?.is === true;
    }

    /** Ways to ask the server for less, and how to undo them. */
    const ways: readonly (readonly [string, (level: string) => Promise<{ readonly url: string; undo?: string }>])[] = [
      ["a URL", async (level) => ({ url: withOption(`synchronous_commit=${level}`) })],
      [
        "a role",
        async (level) => {
          await sql(`ALTER ROLE postgres SET synchronous_commit = ${level}`);
          return { url: server.url, undo: "ALTER ROLE postgres RESET synchronous_commit" };
        },
      ],
      [
        "a database",
        async (level) => {
          await sql(`ALTER DATABASE postgres SET synchronous_commit = ${level}`);
          return { url: server.url, undo: "ALTER DATABASE postgres RESET synchronous_commit" };
        },
      ],
      [
        "the server's file",
        async (level) => {
          await sql(`ALTER SYSTEM SET synchronous_commit = ${level}`);
          await sql("SELECT pg_reload_conf()");
          return { url: server.url, undo: "ALTER SYSTEM RESET synchronous_commit" };
        },
      ],
    ];

    it.each(ways)(
      "synchronous_commit = off from %s: every write waits for the disk all the same",

      async (_way, set) => {
        const { url, undo } = await set("off");
        await using store = createPostgresStore({ url, schema: newSchema(), partitions: 1, notify: false });
        await store.list();
        const missed: string[] = [];
        for (const [name, write] of writes) if (!(await isFlushed(() => write(store)))) missed.push(name);
        if (undo !== undefined) await sql(undo);
        await sql("SELECT pg_reload_conf()");
        expect(missed).toEqual([]);
      },
    );

    it("what asks for less than the disk gets it: the measure sees a commit that does not wait", async () => {
      await using store = createPostgresStore({ url: server.url, schema: newSchema(), partitions: 1, notify: false });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      const flushed: boolean[] = [];
      for (let turn = 0; turn < 20; turn++)
        flushed.push(await isFlushed(() => store.append(ref, [said], { durability: "process" })));
      expect(flushed.filter((each) => !each).length).toBeGreaterThan(0);
    });

    it("a lent pool that sets it in each connection, and one whose role is changed while it is open", async () => {
      const pool = new pg.Pool({ connectionString: server.url, max: 1, idleTimeoutMillis: 1 });
      pool.on("error", () => undefined);
      pool.on("connect", (client) => void client.query("SET synchronous_commit = off"));
      await using store = createPostgresStore({ pool, schema: newSchema(), partitions: 1, notify: false });
      const missed: string[] = [];
      for (const [name, write] of writes) if (!(await isFlushed(() => write(store)))) missed.push(name);
      await using second = createPostgresStore({
        url: server.url,
        schema: newSchema(),
        partitions: 1,
        notify: false,
        maxConnections: 1,
      });
      await second.list();
      await sql("ALTER ROLE postgres SET synchronous_commit = off");
      // Its connection is ended: the next one has the role's new setting.
      await sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'throughline'");
      // A read finds the ended connection, and takes another.
      await second.list();
      for (const [name, write] of writes) if (!(await isFlushed(() => write(second)))) missed.push(name);
      await sql("ALTER ROLE postgres RESET synchronous_commit");
      await pool.end();
      expect(missed).toEqual([]);
    });

    it("PGOPTIONS of a process that is killed with the server: what it was told is there", async () => {
      const schema = newSchema();
      const store = createPostgresStore({ url: server.url, schema, partitions: 1, notify: false });
      await store.save({ ...ref, key: "agent:main:shared-0" }, { sessionId: "one" }, { ifRevision: null });
      await store.close();
      const child = spawn(
        process.execPath,
        [join(import.meta.dirname, "append-many.ts"), server.url, schema, "w", "1", "1"],
        {
          env: { ...process.env, PGOPTIONS: "-c synchronous_commit=off" },
          stdio: ["ignore", "pipe", "inherit"],
        },
      );
      await new Promise((resolve) => child.stdout.once("data", resolve));
      await server.kill();
      await new Promise((resolve) => child.once("close", resolve));
      await server.start();
      await using again = createPostgresStore({ url: server.url, schema, notify: false });
      expect((await again.load({ ...ref, key: "agent:main:shared-0" }))?.head.lastSeq).toBe(2);
    });

    it("a server that is killed right after the answer keeps it, with synchronous_commit = off in the URL", async () => {
      const schema = newSchema();
      const url = withOption("synchronous_commit=off");
      await using store = createPostgresStore({ url, schema, partitions: 1, notify: false, timeoutMs: 20_000 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      for (let round = 1; round <= 3; round++) {
        await store.append(ref, [said]);
        await server.kill();
        await server.start();
        expect((await store.load(ref))?.head.lastSeq).toBe(round);
      }
    });

    it("fsync that is turned off under an open store refuses what is to reach the disk, and nothing else", async () => {
      await using store = createPostgresStore({ url: server.url, schema: newSchema(), partitions: 1, notify: false });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      await store.append(ref, [said], { idempotencyKey: "k" });
      await sql("ALTER SYSTEM SET fsync = off");
      await sql("SELECT pg_reload_conf()");
      const refusals: unknown[] = [];
      const attempts: readonly (() => Promise<unknown>)[] = [
        () => store.append(ref, [said]),
        () => store.append(ref, [said], { idempotencyKey: "k" }),
        () => store.save(ref, { sessionId: "one", label: "x" }, { ifRevision: 1 }),
      ];
      await expect
        .poll(() =>
          attempts[0]?.().then(
            () => "done",
            () => "refused",
          ),
        )
        .toBe("refused");
      const before = (await store.load(ref))?.head.lastSeq;
      for (const attempt of attempts)
        refusals.push(
          await attempt().catch((error: unknown) =>
            ThroughlineError.isInstance(error) ? [error.code, error.outcome, error.remedy?.includes("fsync")] : error,
          ),
        );
      await store.append(ref, [said], { durability: "process" });
      await sql("ALTER SYSTEM RESET fsync");
      await sql("SELECT pg_reload_conf()");
      // What was appended with the key before is in the log: nobody says that it is not.
      expect(refusals).toEqual([
        ["STORE_UNSUPPORTED", "not-applied", true],
        ["STORE_UNSUPPORTED", "unknown", true],
        ["STORE_UNSUPPORTED", "not-applied", true],
      ]);
      expect((await store.load(ref))?.head.lastSeq).toBe((before ?? 0) + 1);
      await expect
        .poll(() =>
          store.append(ref, [said]).then(
            () => "done",
            () => "refused",
          ),
        )
        .toBe("done");
    });

    /** Names a standby that is not there: commits wait until it is taken back. */
    async function awaitStandby(isAwaited: boolean): Promise<void> {
      await sql(
        isAwaited
          ? "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
          : "ALTER SYSTEM RESET synchronous_standby_names",
      );
      await sql("SELECT pg_reload_conf()");
      // The checkpointer tells the others.
      await expect
        .poll(async () => (await observer.query("SHOW synchronous_standby_names")).rows[0].synchronous_standby_names)
        .toBe(isAwaited ? "nobody" : "");
    }

    const backends = (condition: string): Promise<pg.QueryResult<{ pid: number }>> =>
      observer.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'throughline' AND ${condition}`);

    it("with standbys that the owner named, local waits for them too; a commit whose wait was broken off is waited for by the repeat", async () => {
      await using store = createPostgresStore({
        url: withOption("synchronous_commit=local"),
        schema: newSchema(),
        partitions: 1,
        notify: false,
        timeoutMs: 1500,
      });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      const attempt = (): Promise<readonly unknown[]> =>
        store.append(ref, [said], { idempotencyKey: "k" }).then(
          ({ replayed }) => ["done", replayed],
          (error: unknown) => (ThroughlineError.isInstance(error) ? [error.code, error.outcome] : [error]),
        );
      await awaitStandby(true);
      const outcomes = [attempt()];
      await expect.poll(async () => (await backends("wait_event = 'SyncRep'")).rowCount).toBe(1);
      // The server lets the commit stand, and everybody sees it.
      for (const { pid } of (await backends("wait_event = 'SyncRep'")).rows)
        await observer.query("SELECT pg_terminate_backend($1)", [pid]);
      await outcomes[0];
      expect((await store.load(ref))?.head.lastSeq).toBe(1);
      outcomes.push(attempt());
      await outcomes[1];
      // The backend of the second attempt still waits, and holds the key's row.
      outcomes.push(attempt());
      await outcomes[2];
      await awaitStandby(false);
      expect(await Promise.all(outcomes)).toEqual([
        ["STORE_UNREACHABLE", "unknown"],
        ["STORE_UNREACHABLE", "unknown"],
        ["STORE_UNREACHABLE", "unknown"],
      ]);
      await expect.poll(attempt).toEqual(["done", true]);
      expect((await store.load(ref))?.head.lastSeq).toBe(1);
    });

    it("a repeat that meets its own first attempt in its commit, with ids of the caller's: the first result, once", async () => {
      const schema = newSchema();
      const options = { url: server.url, schema, partitions: 1, notify: false } as const;
      await using hurried = createPostgresStore({ ...options, timeoutMs: 500 });
      await using patient = createPostgresStore(options);
      await patient.save(ref, { sessionId: "one" }, { ifRevision: null });
      await hurried.list();
      await awaitStandby(true);
      const keyed = (store: PostgresStore): ReturnType<PostgresStore["append"]> =>
        store.append(ref, [{ ...said, id: "mine" }], { idempotencyKey: "k" });
      await expect(keyed(hurried)).rejects.toMatchObject({ code: "STORE_UNREACHABLE", outcome: "unknown" });
      const second = keyed(patient);
      await expect.poll(async () => (await backends("wait_event_type = 'Lock'")).rowCount).toBe(1);
      await awaitStandby(false);
      expect((await second).replayed).toBe(true);
      expect((await patient.load(ref))?.head.lastSeq).toBe(1);
      // An id that another append took is still refused.
      await expect(patient.append(ref, [{ ...said, id: "mine" }], { idempotencyKey: "other" })).rejects.toMatchObject({
        code: "RECORD_ID_TAKEN",
        outcome: "not-applied",
      });
    });

    it("a keyed append that the server refuses before it has looked for the key is unknown; a new key's was not applied", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({
        url: server.url,
        schema,
        partitions: 1,
        notify: false,
        lockTimeoutMs: 50,
        maxConnections: 1,
      });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      await store.append(ref, [said], { idempotencyKey: "k" });
      await withClient(server.url, async (client) => {
        await client.query(
          `BEGIN; SELECT FROM "${schema}".keyed_appends FOR UPDATE; SELECT FROM "${schema}".sessions FOR UPDATE`,
        );
        const outcomeOf = (key: { readonly idempotencyKey?: string; readonly isNewKey?: boolean }): Promise<unknown> =>
          store
            .append(ref, [said], key)
            .catch((error: unknown) => (ThroughlineError.isInstance(error) ? [error.code, error.outcome] : error));
        expect([
          await outcomeOf({ idempotencyKey: "k" }),
          await outcomeOf({ idempotencyKey: "new", isNewKey: true }),
          await outcomeOf({}),
        ]).toEqual([
          ["STORE_LOCKED", "unknown"],
          ["STORE_LOCKED", "not-applied"],
          ["STORE_LOCKED", "not-applied"],
        ]);
      });
      await store.close();
      const gone = createPostgresStore({
        url: "postgres://nobody@127.0.0.1:1/x",
        connectTimeoutMs: 50,
        timeoutMs: 50,
      });
      const refusal = { code: "STORE_UNREACHABLE", outcome: "unknown" };
      await expect(gone.append(ref, [said], { idempotencyKey: "k" })).rejects.toMatchObject(refusal);
      await gone.close();
    });
  },
);
