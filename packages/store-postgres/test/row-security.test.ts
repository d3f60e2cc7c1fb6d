import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { ThroughlineError, type SessionRef } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { publicMethods } from "./public-methods.ts";
import { giveMain, readmeGrants } from "./readme-grants.ts";
import {
  all,
  bytesOf,
  own,
  partialOf,
  say,
  sayFile,
  searchOf,
  secret,
  theirFile,
  theirs,
  tries,
  until,
  type Fixture,
} from "./role-tries.ts";
import { attacks } from "./row-attacks.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

describe.skipIf(url === "").each(["plain", "tenant"] as const)(
  `row-level security by agent, layout %s${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout) => {
    let fixture: Fixture;
    let before: unknown;
    const role = `role_${newSchema()}`;
    const theirSource = { format: "pi", sessionId: "their-source" };

    /** All that the other agent has, as its owner sees it. */
    async function theirState({ owner }: Fixture): Promise<unknown> {
      const { sessions } = await owner.list({ agentId: "other", state: "any", sort: "key" });
      const records = await Promise.all(sessions.map(({ ref }) => all(owner.read(ref, { payload: "source" }))));
      const { purgedAtMs } = await owner.list({
        importedFrom: { format: theirSource.format, sourceId: theirSource.sessionId },
      });
      const files = await all(owner.files.list(theirs));
      const bytes = await all(owner.files.get(theirs, theirFile));
      return { sessions, records, purgedAtMs, files, bytes, partial: await owner.partials.read(theirs) };
    }

    async function numbers({ schema }: Fixture): Promise<Readonly<Record<string, string>>> {
      const { rows } = await withClient(url, (client) =>
        client.query<Record<string, string>>(`SELECT
          (SELECT session_no FROM "${schema}".sessions WHERE session_id = 'own') AS own,
          (SELECT to_jsonb(s) ->> 'tenant' FROM "${schema}".sessions s WHERE session_id = 'own') AS tenant,
          (SELECT to_jsonb(s) ->> 'tenant' FROM "${schema}".sessions s WHERE session_id = 'theirs') AS theirtenant,
          (SELECT session_no FROM "${schema}".sessions WHERE session_id = 'theirs') AS their,
          (SELECT upload FROM "${schema}".files WHERE agent_id = 'other') AS upload,
          (SELECT base_nos[1] FROM "${schema}".sessions WHERE session_id = 'their-heir') AS purged,
          (SELECT substring(r.tableoid::regclass::text FROM 'records_(\\d+)') FROM "${schema}".sessions s
             JOIN "${schema}".records r USING (session_no) WHERE s.session_id = 'theirs' LIMIT 1) AS partition`),
      );
      return rows[0] ?? expect.unreachable("no row");
    }

    beforeAll(async () => {
      const schema = newSchema();
      const owner = createPostgresStore({ url, schema, partitions: 2, rowSecurity: true, layout });
      for (const [ref, sessionId] of [
        [own, "own"],
        [theirs, "theirs"],
      ] as const)
        await owner.save(ref, { sessionId, label: sessionId === "own" ? "plain" : secret }, { ifRevision: null });
      await owner.append(own, [say("hello"), sayFile((await owner.files.put(own, bytesOf("hello"))).id)]);
      await owner.append(theirs, [{ ...say(`${secret} ${"x".repeat(300_000)}`), id: "secret-1" }, say(secret)], {
        idempotencyKey: "k",
        entry: { model: secret },
        turn: { action: "open", turnId: "t", owner: "node", fence: 1, ...until },
      });
      expect(await owner.files.put(theirs, bytesOf(`file of ${secret}`))).toMatchObject({ id: theirFile });
      await owner.append(theirs, [sayFile(theirFile)], { turn: { action: "renew", fence: 1, ...until } });
      await owner.partials.write(theirs, partialOf("theirs"));
      const gone = { ...theirs, key: "agent:other:gone" };
      await owner.save(gone, { sessionId: "gone", importedFrom: theirSource }, { ifRevision: null });
      await owner.append(gone, [say(secret)]);
      await owner.fork.fork(gone, { ...theirs, key: "agent:other:heir" }, { sessionId: "their-heir" });
      await owner.remove(gone, { purge: true });
      await withClient(url, (client) =>
        client.query(
          `CREATE ROLE ${role} LOGIN PASSWORD 'secret'; ${readmeGrants(schema, role)} ${giveMain(layout, schema, role)}`,
        ),
      );
      const roleUrl = new URL(url);
      [roleUrl.username, roleUrl.password] = [role, "secret"];
      const folder = await mkdtemp(join(tmpdir(), "throughline-roles-"));
      const store = createPostgresStore({ url: roleUrl.href, schema, migrate: false, pollMs: 50, notify: false });
      fixture = { schema, folder, owner, store, roleUrl: roleUrl.href };
      before = await theirState(fixture);
      expect(before).toMatchObject({ partial: { text: secret }, purgedAtMs: expect.any(Number) });
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
      await store.save(own, { sessionId: "own" }, { ifRevision: null });
      await store.append(own, [say("hello")]);
    });

    it("a list by source and a search for any of some words show a role its own agents only", async () => {
      const { store, owner } = fixture;
      const importedFrom = { format: theirSource.format, sourceId: theirSource.sessionId };
      expect(await store.list({ importedFrom })).toEqual({ sessions: [], nextCursor: null, purgedAtMs: null });
      const found = async (anyOf: readonly string[]): Promise<string[]> =>
        ((await all(searchOf(store).search({ anyOf }))) as { readonly sessionId: string }[]).map(
          (hit) => hit.sessionId,
        );
      expect((await found([secret, "hellos"])).toSorted()).toEqual(["fork", "own"]);
      expect(await found([secret])).toEqual([]);
      expect((await all(searchOf(owner).search({ anyOf: [secret] }))).length).toBeGreaterThan(0);
      const imported = { ...own, key: "agent:main:imported" };
      await store.save(imported, { sessionId: "imported", importedFrom: theirSource }, { ifRevision: null });
      expect((await store.list({ importedFrom })).sessions.map(({ sessionId }) => sessionId)).toEqual(["imported"]);
      await store.remove(imported, { purge: true });
      expect(await store.list({ importedFrom })).toMatchObject({ sessions: [], purgedAtMs: expect.any(Number) });
      before = await theirState(fixture);
    });

    it("every method of a store stands in the table", () => {
      const named = new Set(tries.map(([method]) => method.split(",")[0]));
      expect([...named].toSorted()).toEqual(publicMethods(fixture.store));
    });

    it.each(attacks[layout])(
      "a role that %s by SQL of its own changes and sees nothing",
      async (_name, sql, wanted) => {
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
      },
    );

    it("a role with a schema of its own puts nothing in the way of what the policies call", async () => {
      const { schema } = fixture;
      const s = `own_${schema}`;
      await withClient(url, (client) => client.query(`CREATE SCHEMA ${s} AUTHORIZATION ${role}`));
      await withClient(fixture.roleUrl, async (client) => {
        await client.query(`CREATE FUNCTION ${s}.pg_has_role(oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
          CREATE FUNCTION ${s}.to_regrole(text) RETURNS regrole LANGUAGE sql AS 'SELECT current_user::regrole';
          CREATE FUNCTION ${s}.serves_tenant_1(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
          CREATE FUNCTION ${s}.holds_file_1(text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
          CREATE FUNCTION ${s}.serves_1(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'`);
        await client.query(`SET search_path = ${s}, "${schema}"`);
        for (const table of [
          "sessions",
          "records",
          "payloads",
          "keyed_appends",
          "partials",
          "agents",
          "search_documents",
          "purged_sources",
          "files",
          "file_chunks",
          "file_references",
          "vector_sets",
          "vectors",
          "vector_progress",
          "vector_gaps",
        ]) {
          const { rows } = await client.query(`SELECT t::text FROM ${table} t`);
          expect(inspect(rows, { maxArrayLength: null, maxStringLength: null })).not.toMatch(/Zanzibar|other|theirs/);
        }
      });
      await withClient(url, (client) => client.query(`DROP SCHEMA ${s} CASCADE`));
    });

    it("a fork that names another's records shows none of them, to nobody", async () => {
      const { schema, owner } = fixture;
      if (layout === "plain") return;
      const known = await numbers(fixture);
      const name = (bases: string): Promise<unknown> =>
        withClient(fixture.roleUrl, (client) =>
          client.query(`UPDATE "${schema}".sessions SET ${bases} WHERE session_no = ${known["own"]}`),
        );
      await name(`base_nos = ARRAY[${known["their"]}], base_to_seqs = ARRAY[1], base_ids = ARRAY['theirs']`);
      const hits = (await all(searchOf(owner).search({ text: secret, state: "any" }))) as {
        readonly ref: SessionRef;
      }[];
      expect(hits.length).toBeGreaterThan(0);
      expect(new Set(hits.map(({ ref }) => ref.agentId))).toEqual(new Set(["other"]));
      for (const store of [owner, fixture.store])
        expect(inspect(await all(store.read(own)).catch(String), { depth: 9 })).not.toContain(secret);
      await name("base_nos = NULL, base_to_seqs = NULL, base_ids = NULL");
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

    it("a copy of a secured store is one too", { tags: ["slow"] }, async () => {
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
