import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { ThroughlineError, type PartialReply, type SearchFacet, type SessionRef } from "@throughline/core";
import { createPostgresStore, type JobLease, type PostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { publicMethods } from "./public-methods.ts";
import { readmeGrants } from "./readme-grants.ts";
import { attacks } from "./row-attacks.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

const own: SessionRef = { namespace: "", agentId: "main", key: "agent:main:own" };
const theirs: SessionRef = { namespace: "", agentId: "other", key: "agent:other:one" };
const secret = "Zanzibar";
const say = (content: string): { readonly type: string; readonly message: object } => ({
  type: "message",
  message: { role: "user", content },
});

interface Fixture {
  readonly schema: string;
  readonly folder: string;
  /** The owner of the tables, who sees everything. */
  readonly owner: PostgresStore;
  /** A role that has been given the agent `main`. */
  readonly store: PostgresStore;
  readonly roleUrl: string;
  /** Of a job of the other agent's. */
  readonly lease: JobLease;
}

const searchOf = ({ search }: PostgresStore): SearchFacet => search ?? expect.unreachable("no search");

async function all(pages: AsyncIterable<unknown>): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const each of pages) found.push(each);
  return found;
}

/** A method tried on what belongs to another agent, and what comes of it: an error's code, or nothing of theirs. */
type Try = readonly [method: string, wanted: string, attempt: (fixture: Fixture) => Promise<unknown>];

const until = { leaseUntilMs: 4_000_000_000_000 };

function partialOf(sessionId: string): PartialReply {
  const call = { turnId: "t", fence: 1, step: 1, attempt: 0, afterSeq: 1, provider: null, api: null, model: null };
  return { v: 1, sessionId, ...call, text: secret, updatedMs: 1 };
}

const tries: readonly Try[] = [
  ["append", "SESSION_NOT_FOUND", ({ store }) => store.append(theirs, [say("mine")])],
  [
    "append, resuming a turn",
    "SESSION_NOT_FOUND",
    ({ store }) =>
      store.append(theirs, [say("mine")], { turn: { action: "open", turnId: "t", owner: "me", fence: 1, ...until } }),
  ],
  [
    "append, with their key",
    "SESSION_NOT_FOUND",
    ({ store }) => store.append(theirs, [say(secret)], { idempotencyKey: "k" }),
  ],
  ["append, with their lease", "LEASE_LOST", ({ store, lease }) => store.append(own, [say("x")], { lease })],
  ["load", "nothing", ({ store }) => store.load(theirs)],
  [
    "save",
    "REVISION_CONFLICT",
    ({ store }) => store.save(theirs, { sessionId: "theirs", label: "mine" }, { ifRevision: 2 }),
  ],
  [
    "save, a session of theirs",
    "STORE_READ_ONLY",
    ({ store }) => store.save({ ...theirs, key: "agent:other:new" }, { sessionId: "new" }, { ifRevision: null }),
  ],
  [
    "save, in the place of theirs",
    "STORE_READ_ONLY",
    ({ store }) => store.save(theirs, { sessionId: "new" }, { ifRevision: null }),
  ],
  ["read", "SESSION_NOT_FOUND", ({ store }) => all(store.read(theirs))],
  ["readWindow", "SESSION_NOT_FOUND", ({ store }) => store.readWindow(theirs)],
  ["list", "nothing", async ({ store }) => (await store.list({ agentId: "other", state: "any" })).sessions],
  ["partials.read", "SESSION_NOT_FOUND", ({ store }) => store.partials.read(theirs)],
  ["partials.write", "SESSION_NOT_FOUND", ({ store }) => store.partials.write(theirs, partialOf("theirs"))],
  ["partials.remove", "nothing", ({ store }) => store.partials.remove(theirs, 1)],
  ["move", "SESSION_NOT_FOUND", ({ store }) => store.move(theirs, { kind: "archive" })],
  ["redact", "SESSION_NOT_FOUND", ({ store }) => store.redact(theirs, ["secret-1"], { reason: "mine" })],
  ["remove", "SESSION_NOT_FOUND", ({ store }) => store.remove(theirs, { purge: true })],
  [
    "fork.fork",
    "SESSION_NOT_FOUND",
    ({ store }) => store.fork.fork(theirs, { ...theirs, key: "agent:other:f" }, { sessionId: "f" }),
  ],
  [
    "fork.fork, into their agent",
    "KEY_AGENT_MISMATCH",
    ({ store }) => store.fork.fork(own, { ...theirs, key: "agent:other:f" }, { sessionId: "f" }),
  ],
  ["fork.sharers", "SESSION_NOT_FOUND", async ({ store }) => await store.fork.sharers?.(theirs, [1])],
  [
    "watch.watch",
    "SESSION_NOT_FOUND",
    ({ store }) => all(store.watch.watch(theirs, { afterSeq: 0, signal: AbortSignal.timeout(500) })),
  ],
  ["search.search", "nothing", ({ store }) => all(searchOf(store).search({ text: secret, state: "any" }))],
  [
    "search.search, by key",
    "nothing",
    ({ store }) => all(searchOf(store).search({ text: secret, agentId: "other", key: theirs.key })),
  ],
  [
    "search.lag",
    "nothing",
    async ({ store }) => ((await searchOf(store).lag()) === 0 ? [] : ["their records counted"]),
  ],
  ["search.rebuild", "nothing", ({ store }) => Promise.resolve(searchOf(store).rebuild?.())],
  [
    "leases.acquire",
    "STORE_READ_ONLY",
    ({ store, lease }) => store.leases.acquire(lease.name, { owner: lease.owner, leaseMs: 1000 }),
  ],
  ["leases.renew", "LEASE_LOST", ({ store, lease }) => store.leases.renew(lease, 1000)],
  ["leases.release", "nothing", ({ store, lease }) => store.leases.release(lease)],
  ["maintenance.verify", "nothing", ({ store }) => all(store.maintenance.verify({ full: true }))],
  [
    "maintenance.repair",
    "nothing",
    async ({ store }) => (await all(store.maintenance.repair())).filter((found) => inspect(found).includes("other")),
  ],
  [
    "maintenance.backup",
    "STORE_READ_ONLY",
    ({ store, folder }) => store.maintenance.backup(join(folder, "theirs.sql")),
  ],
  ["close", "nothing", ({ store }) => store.close()],
];

describe.skipIf(url === "")(
  `row-level security by agent${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    let fixture: Fixture;
    let before: unknown;
    const role = `role_${newSchema()}`;

    /** All that the other agent has, as its owner sees it. */
    async function theirState({ owner }: Fixture): Promise<unknown> {
      const { sessions } = await owner.list({ agentId: "other", state: "any", sort: "key" });
      const records = await Promise.all(sessions.map(({ ref }) => all(owner.read(ref, { payload: "source" }))));
      return { sessions, records, partial: await owner.partials.read(theirs) };
    }

    async function numbers({ schema }: Fixture): Promise<Readonly<Record<string, string>>> {
      const { rows } = await withClient(url, (client) =>
        client.query<Record<string, string>>(`SELECT
          (SELECT session_no FROM "${schema}".sessions WHERE session_id = 'own') AS own,
          (SELECT session_no FROM "${schema}".sessions WHERE session_id = 'theirs') AS their,
          (SELECT base_nos[1] FROM "${schema}".sessions WHERE session_id = 'their-heir') AS purged,
          (SELECT substring(r.tableoid::regclass::text FROM 'records_(\\d+)') FROM "${schema}".sessions s
             JOIN "${schema}".records r USING (session_no) WHERE s.session_id = 'theirs' LIMIT 1) AS partition`),
      );
      return rows[0] ?? expect.unreachable("no row");
    }

    beforeAll(async () => {
      const schema = newSchema();
      const owner = createPostgresStore({ url, schema, partitions: 2, rowSecurity: true });
      for (const [ref, sessionId] of [
        [own, "own"],
        [theirs, "theirs"],
      ] as const)
        await owner.save(ref, { sessionId, label: sessionId === "own" ? "plain" : secret }, { ifRevision: null });
      await owner.append(own, [say("hello")]);
      await owner.append(theirs, [{ ...say(`${secret} ${"x".repeat(300_000)}`), id: "secret-1" }, say(secret)], {
        idempotencyKey: "k",
        entry: { model: secret },
        turn: { action: "open", turnId: "t", owner: "node", fence: 1, ...until },
      });
      await owner.partials.write(theirs, partialOf("theirs"));
      const gone = { ...theirs, key: "agent:other:gone" };
      await owner.save(gone, { sessionId: "gone" }, { ifRevision: null });
      await owner.append(gone, [say(secret)]);
      await owner.fork.fork(gone, { ...theirs, key: "agent:other:heir" }, { sessionId: "their-heir" });
      await owner.remove(gone, { purge: true });
      const lease = await owner.leases.acquire("their job", { owner: "node", leaseMs: 60_000 });
      await withClient(url, (client) =>
        client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'; ${readmeGrants(schema, role)}
          INSERT INTO "${schema}".agent_roles (role_name, agent_id) VALUES ('${role}', 'main'), ('somebody', 'other')`),
      );
      const roleUrl = new URL(url);
      [roleUrl.username, roleUrl.password] = [role, "secret"];
      const folder = await mkdtemp(join(tmpdir(), "throughline-roles-"));
      const store = createPostgresStore({ url: roleUrl.href, schema, migrate: false, pollMs: 50, notify: false });
      fixture = { schema, folder, owner, store, roleUrl: roleUrl.href, lease: lease ?? expect.unreachable("no lease") };
      before = await theirState(fixture);
      expect(before).toMatchObject({ partial: { text: secret } });
    });

    afterAll(async () => {
      await fixture.store.close();
      await fixture.owner.close();
      await withClient(url, (client) => client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
      await rm(fixture.folder, { recursive: true });
    });

    it("a store that was closed to others stays open to its own role", async () => {
      const { store } = fixture;
      const [two, fork] = [
        { ...own, key: "agent:main:two" },
        { ...own, key: "agent:main:fork" },
      ];
      await store.append(own, [say("needle")], { idempotencyKey: "own", entry: { label: "plain" } });
      await store.save(two, { sessionId: "two" }, { ifRevision: null });
      await store.append(two, [say("asked")], {
        turn: { action: "open", turnId: "t", owner: "me", fence: 1, ...until },
      });
      await store.partials.write(two, partialOf("two"));
      expect(await store.partials.read(two)).toEqual(partialOf("two"));
      await store.partials.remove(two, 1);
      await store.fork.fork(own, fork, { sessionId: "fork" });
      await store.append(fork, [say("in the fork")]);
      await store.fork.fork(fork, { ...own, key: "agent:main:fork-of-fork" }, { sessionId: "fork-of-fork" });
      await store.remove(own, { purge: true }).then(() => store.append(fork, [say("goes on")]));
      expect((await all(searchOf(store).search({ text: "needle" }))).length).toBe(1);
      expect((await store.list({ sort: "key" })).sessions.map(({ sessionId }) => sessionId)).toEqual([
        "fork",
        "fork-of-fork",
        "two",
      ]);
      const lease = await store.leases.acquire("own job", { owner: "me", leaseMs: 1000 });
      await store.append(fork, [say("under a lease")], lease === null ? {} : { lease });
      await store.save(own, { sessionId: "own" }, { ifRevision: null });
      await store.append(own, [say("hello")]);
    });

    it("every method of a store stands in the table", () => {
      const named = new Set(tries.map(([method]) => method.split(",")[0]));
      expect([...named].toSorted()).toEqual(publicMethods(fixture.store));
    });

    it.each(attacks)("a role that %s by SQL of its own changes and sees nothing", async (_name, sql, wanted) => {
      const known = await numbers(fixture);
      const statement = sql.replaceAll(/\$(\w+)/g, (_all, name: string) => String(known[name]));
      const outcome = await withClient(fixture.roleUrl, async (client) => {
        await client.query(`SET search_path = "${fixture.schema}"`);
        return client.query(statement).then(
          ({ rowCount }) => `${rowCount} rows`,
          (error: { readonly code?: string; readonly message: string; readonly detail?: string }) => {
            expect(`${error.message} ${error.detail}`).not.toContain(secret);
            return String(error.code);
          },
        );
      });
      expect(outcome).toBe(wanted);
      expect(await theirState(fixture)).toEqual(before);
    });

    it("no table shows a role anything of another agent, nor do the names of agents and roles", async () => {
      const seen = await withClient(fixture.roleUrl, async (client) => {
        const tables = await client.query<{ name: string }>(
          "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1",
          [fixture.schema],
        );
        expect(tables.rows.length).toBeGreaterThan(10);
        const rows: unknown[] = [];
        for (const { name } of tables.rows)
          rows.push(...(await client.query(`SELECT t::text FROM "${fixture.schema}"."${name}" t`)).rows);
        return inspect(rows, { depth: 5, maxArrayLength: null, maxStringLength: null });
      });
      expect(seen).toContain("own");
      expect(seen).not.toMatch(/Zanzibar|other|theirs|somebody/);
    });

    it("what it is told of another agent's sessions are numbers, and only that there is something", async () => {
      const payloads: string[] = [];
      await withClient(fixture.roleUrl, async (client) => {
        client.on("notification", ({ payload = "" }) => payloads.push(payload));
        await client.query(`LISTEN "${fixture.schema}_grown"`);
        await using owner = createPostgresStore({ url, schema: fixture.schema });
        await owner.append({ ...theirs, key: "agent:other:heir" }, [say(secret)]);
        await owner.close();
        for (let waited = 0; payloads.length === 0 && waited < 200; waited++)
          await client.query("SELECT pg_sleep(0.01)");
      });
      expect(payloads.join()).toMatch(/^\d+$/);
      before = await theirState(fixture);
    });

    it("a search of one role leaves the records of others to be found by them", async () => {
      const { schema, store, owner } = fixture;
      await withClient(url, (client) =>
        client.query(`UPDATE "${schema}".search_state SET caught_up_slot = 0;
        DELETE FROM "${schema}".search_documents; DELETE FROM "${schema}".search_positions;
        UPDATE "${schema}".sessions SET appended_at_ms = appended_at_ms - 3600000 WHERE agent_id = 'other'`),
      );
      // One of them is what a fork has of a purged session.
      expect((await all(searchOf(store).search({ text: "hello" }))).length).toBe(2);
      expect((await all(searchOf(owner).search({ text: secret }))).length).toBeGreaterThan(1);
    });

    it.each(tries)(
      "%s of another agent's gives %s, says nothing of it and changes nothing",
      async (_method, wanted, attempt) => {
        const outcome: unknown = await attempt(fixture).catch((error: unknown) => error);
        if (wanted === "nothing")
          expect(
            outcome === null || outcome === undefined || (Array.isArray(outcome) && outcome.length === 0),
            inspect(outcome),
          ).toBe(true);
        else expect(ThroughlineError.isInstance(outcome) ? outcome.code : outcome).toBe(wanted);
        const told = inspect(outcome, { depth: 10, showHidden: true });
        expect(told).not.toContain(secret);
        expect(await theirState(fixture)).toEqual(before);
        expect(await readdir(fixture.folder)).toEqual([]);
      },
    );

    it("a copy of a secured store is one too", async () => {
      const path = join(fixture.folder, "copy.sql");
      await fixture.owner.maintenance.backup(path);
      const name = `copy_${fixture.schema}`;
      await withClient(url, (client) => client.query(`CREATE DATABASE ${name}`));
      const script = await readFile(path, "utf8");
      const counts = async (from: string): Promise<unknown> => {
        const copy = new URL(from);
        copy.pathname = `/${name}`;
        return withClient(
          copy.href,
          async (client) =>
            (
              await client.query(
                `SELECT count(*)::int AS count FROM "${fixture.schema}".sessions WHERE agent_id = 'other'`,
              )
            ).rows[0],
        );
      };
      const copyUrl = new URL(url);
      copyUrl.pathname = `/${name}`;
      await withClient(copyUrl.href, (client) =>
        client.query(
          `${script}; GRANT USAGE ON SCHEMA "${fixture.schema}" TO ${role}; GRANT SELECT ON ALL TABLES IN SCHEMA "${fixture.schema}" TO ${role}`,
        ),
      );
      expect(await counts(url)).toEqual({ count: 2 });
      expect(await counts(fixture.roleUrl)).toEqual({ count: 0 });
      await withClient(url, (client) => client.query(`DROP DATABASE ${name}`));
    });
  },
);
