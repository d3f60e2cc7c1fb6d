import {
  ThroughlineError,
  type AppendDraft,
  type AppendOptions,
  type AppendResult,
  type SessionRef,
} from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { soakKeyedAppends } from "./keyed-soak.ts";
import { startPostgres, type PostgresServer } from "./postgres-server.ts";
import { newSchema } from "./store-under-test.ts";
import { startProxy, type Fault, type TcpProxy } from "./tcp-proxy.ts";

const started = await startPostgres();
const isHere = !("unavailable" in started);
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };

function say(content: string): AppendDraft {
  return { type: "message", message: { role: "user", content } };
}

/** What is appended, each with a key. */
const kinds: readonly (readonly [string, readonly AppendDraft[], AppendOptions])[] = [
  ["a record", [say("said")], {}],
  ["a record with an id of the caller's", [{ ...say("said"), id: "mine" }], {}],
  [
    "a turn that begins",
    [say("said")],
    { turn: { action: "open", turnId: "t", owner: "o", fence: 1, leaseUntilMs: 4e12 } },
  ],
  ["a patch of the entry", [say("said")], { entry: { label: "new" } }],
  ["a record that expects the head", [say("said")], { expect: { head: null } }],
  ["records of 200 KB", [say("said"), say("x".repeat(200_000)), say("x".repeat(200_000))], {}],
];

interface Fixture {
  readonly append: (store: PostgresStore) => Promise<AppendResult>;
  /** Through the proxy, in a hurry. */
  readonly store: PostgresStore;
}

/** A failure, how it is brought about, and whether the first attempt reaches the log: "either" where nobody can say. */
type Failure = readonly [string, isApplied: boolean | "either", bringAbout: (fixture: Fixture) => Promise<unknown>];

describe.skipIf(!isHere)(
  `a keyed append that fails, and its repeat${isHere ? "" : `: needs PostgreSQL, ${started.unavailable}`}`,
  () => {
    const server = started as PostgresServer;
    let proxy: TcpProxy;
    let schema: string;
    let observer: pg.Client;
    beforeAll(async () => {
      proxy = await startProxy(server.port);
    });
    beforeEach(async () => {
      observer = await connect();
      schema = newSchema();
    });
    afterEach(async () => {
      await observer.end().catch(() => undefined);
    });
    afterAll(async () => {
      await proxy.close();
      await server.stop();
    });

    async function connect(): Promise<pg.Client> {
      const client = new pg.Client({ connectionString: server.url });
      client.on("error", () => undefined);
      await client.connect();
      return client;
    }

    async function nameStandby(name: string): Promise<void> {
      await observer.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
      await observer.query("SELECT pg_reload_conf()");
      await expect
        .poll(async () => (await observer.query("SHOW synchronous_standby_names")).rows[0].synchronous_standby_names)
        .toBe(name);
    }

    /** The backend of the append, once it waits for this. */
    async function waiting(condition: string): Promise<number> {
      const find = (): Promise<pg.QueryResult<{ pid: number }>> =>
        observer.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'throughline' AND ${condition}`);
      await expect.poll(async () => (await find()).rowCount).toBe(1);
      return (await find()).rows[0]?.pid ?? 0;
    }

    /** Held back where it is written to the log and flushed, and nobody has been told. */
    async function atCommit(fixture: Fixture, end: (pid: number) => Promise<unknown>): Promise<unknown> {
      await nameStandby("nobody");
      try {
        const append = fixture.append(fixture.store).catch((error: unknown) => error);
        await end(await waiting("wait_event = 'SyncRep'"));
        return await append;
      } finally {
        await observer.end().catch(() => undefined);
        observer = await connect();
        await nameStandby("");
      }
    }

    /** Held back by a lock on the session's row, before anything was written. */
    async function atLock(fixture: Fixture, end: (pid: number) => Promise<unknown>): Promise<unknown> {
      const holder = await connect();
      await holder.query(`BEGIN; SELECT FROM "${schema}".sessions FOR UPDATE`);
      const append = fixture.append(fixture.store).catch((error: unknown) => error);
      await end(await waiting("wait_event_type = 'Lock'"));
      const outcome = await append;
      await holder.end().catch(() => undefined);
      await observer.end().catch(() => undefined);
      observer = await connect();
      return outcome;
    }

    const cut = (name: string, fault: Fault, isApplied: boolean | "either"): Failure => [
      name,
      isApplied,
      async ({ append, store }) => {
        proxy.fault = fault;
        const outcome = await append(store).catch((error: unknown) => error);
        expect(proxy.fault).toBeNull();
        return outcome;
      },
    ];
    const killed = async (): Promise<void> => {
      await server.kill();
      await server.start();
    };
    const call = (text: string) => (pid: number) => observer.query(`SELECT ${text}($1)`, [pid]);

    const failures: readonly Failure[] = [
      cut("the connection is cut before the statement", "cut-before", false),
      cut("the connection is cut in the statement", { cutAfterBytes: 200 }, false),
      cut("the connection is cut before the answer", "cut-answer", true),
      cut("nothing more is heard", "silence", "either"),
      ["the server ends the connection at the lock", false, (fixture) => atLock(fixture, call("pg_terminate_backend"))],
      ["the server cancels the statement at the lock", false, (fixture) => atLock(fixture, call("pg_cancel_backend"))],
      ["the lock takes too long", false, (fixture) => atLock(fixture, () => Promise.resolve())],
      ["the server is killed at the lock", false, (fixture) => atLock(fixture, killed)],
      [
        "the server ends the connection in the commit",
        true,
        (fixture) => atCommit(fixture, call("pg_terminate_backend")),
      ],
      ["the commit takes too long", true, (fixture) => atCommit(fixture, () => Promise.resolve())],
      ["the server is killed in the commit", true, (fixture) => atCommit(fixture, killed)],
    ];

    it.each(failures.map((failure, at) => [...failure, at] as const))(
      "%s: unknown; the repeat decides, one copy (was applied: %s)",
      async (_name, isApplied, bringAbout, place) => {
        // In the short tier each failure meets two of the kinds, by turns.
        const short = kinds.filter((_kind, at) => (at + place) % 3 === 0);
        for (const [kind, drafts, options] of testSize({ short, long: kinds })) {
          const address = { ...ref, key: `agent:main:${kind.replaceAll(" ", "-").replaceAll("'", "")}` };
          const direct = createPostgresStore({ url: server.url, schema, partitions: 1, notify: false });
          await direct.save(address, { sessionId: kind.replaceAll(/\W/g, "-"), label: "old" }, { ifRevision: null });
          const through = server.url.replace(/:\d+\/postgres$/, `:${proxy.port}/postgres`);
          const store = createPostgresStore({
            url: through,
            schema,
            migrate: false,
            notify: false,
            timeoutMs: 3000,
            lockTimeoutMs: 400,
            maxConnections: 2,
          });
          await store.load(address);
          const append = (by: PostgresStore): Promise<AppendResult> =>
            by.append(address, drafts, { ...options, idempotencyKey: "key" });
          const outcome = await bringAbout({ append, store });
          expect(ThroughlineError.isInstance(outcome) ? outcome.outcome : outcome, kind).toBe("unknown");
          await expect
            .poll(() =>
              direct.load(address).then(
                () => true,
                () => false,
              ),
            )
            .toBe(true);
          const result = await append(direct);
          if (isApplied !== "either") expect(result.replayed, kind).toBe(isApplied);
          const state = await direct.load(address);
          expect([state?.head.lastSeq, state?.entry["label"], state?.head.fence], kind).toEqual([
            drafts.length,
            options.entry === undefined ? "old" : "new",
            options.turn === undefined ? 0 : 1,
          ]);
          expect(result.records.map(({ seq }) => seq)).toEqual(drafts.map((_draft, index) => index + 1));
          await store.close();
          await direct.close();
        }
      },
    );

    it("hundreds of appends while connections, statements and the server end: none lost, none twice, none falsely denied", async () => {
      const size = testSize({
        short: { appends: 80, kills: 1, unknown: 20, replayed: 1 },
        long: { appends: 5000, kills: 20, unknown: 20, replayed: 6 },
      });
      const counts = await soakKeyedAppends(server, { ...size, seed: 7 });
      expect(counts).toMatchObject({ lost: 0, twice: 0, falselyNotApplied: 0, kills: size.kills });
      expect(counts.unknown).toBeGreaterThanOrEqual(size.unknown);
      expect(counts.replayed).toBeGreaterThanOrEqual(size.replayed);
    });
  },
);
