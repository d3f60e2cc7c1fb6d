import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionRef } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { readmeGrants } from "./readme-grants.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const fork: SessionRef = { ...ref, key: "agent:main:fork" };
const said = { type: "message", message: { role: "user", content: "needle in a haystack" } };

/** Types that the store's statements have, and those that others are turned into. */
const types = [
  "text",
  "name",
  "varchar",
  '"char"',
  "bigint",
  "integer",
  "smallint",
  "double precision",
  "real",
  "numeric",
  "boolean",
  "bytea",
  "oid",
  "regclass",
  "text[]",
  "name[]",
  "bigint[]",
  "tsvector",
  "tsquery",
];

const operators = ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "||", "@>", "@@", "~~", "!~~", "&&"];

/** Functions that the store's statements name. */
const functions =
  `age array_agg array_position cardinality clock_timestamp concat concat_ws count current_schemas current_setting currval
  date_part floor format json_agg lag lower max min nextval pg_advisory_xact_lock pg_current_xact_id pg_has_role pg_notify
  pg_sleep quote_ident quote_literal quote_nullable row_security_active set_config string_to_array sum ts_rank
  unnest has_schema_privilege substring`.split(/\s+/);

/**
 * A schema in which every operator and function the store might mean exists for every pair of types, and each one says that
 * it was called. PostgreSQL prefers one whose types fit exactly to one of its own that fits after a conversion.
 */
const trap = (schema: string): string => `
CREATE SCHEMA ${schema};
DO $trap$
DECLARE
  v_types text[] := ARRAY[${types.map((type) => `'${type}'`).join(", ")}];
  v_one text;
  v_other text;
  v_name text;
  v_body text := 'RETURNS boolean LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''trapped''''; END''';
BEGIN
  FOREACH v_one IN ARRAY v_types LOOP
    FOREACH v_name IN ARRAY ARRAY[${functions.map((name) => `'${name}'`).join(", ")}] LOOP
      EXECUTE format('CREATE FUNCTION ${schema}.%I(%s) %s', v_name, v_one, v_body);
    END LOOP;
    FOREACH v_other IN ARRAY v_types LOOP
      EXECUTE format('CREATE FUNCTION ${schema}.trapped(%s, %s) %s', v_one, v_other, v_body);
      FOREACH v_name IN ARRAY ARRAY[${operators.map((name) => `'${name}'`).join(", ")}] LOOP
        EXECUTE format('CREATE OPERATOR ${schema}.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = ${schema}.trapped)',
          v_name, v_one, v_other);
      END LOOP;
    END LOOP;
  END LOOP;
  FOREACH v_name IN ARRAY ARRAY['array_position', 'date_part', 'string_to_array', 'set_config', 'pg_notify', 'format', 'concat',
    'concat_ws', 'current_setting', 'row_security_active', 'pg_has_role', 'ts_rank', 'lag'] LOOP
    FOREACH v_one IN ARRAY v_types LOOP
      FOREACH v_other IN ARRAY v_types LOOP
        EXECUTE format('CREATE FUNCTION ${schema}.%I(%s, %s) %s', v_name, v_one, v_other, v_body);
      END LOOP;
    END LOOP;
  END LOOP;
END $trap$;`;

async function through(pages: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const _each of pages) count += 1;
  return count;
}

/** Everything a store can do, most of it in more than one way. */
async function useAll(store: PostgresStore, folder: string, isOwner: boolean): Promise<void> {
  await store.save(ref, { sessionId: "one", label: "x" }, { ifRevision: null });
  await store.save({ ...ref, key: "agent:main:old" }, { sessionId: "old" }, { ifRevision: null, createdAtMs: 5 });
  await store.append(ref, [said, { ...said, id: "chosen" }]);
  await store.append(ref, [said]);
  const turn = { action: "open", turnId: "t", owner: "o", leaseUntilMs: 4e12, fence: 1 } as const;
  await store.append(ref, [said], { turn, durability: "process" });
  await store.append(ref, [said], { turn: { action: "close", fence: 1 }, entry: { label: "y", updatedAt: 4e12 } });
  for (const _twice of [1, 2])
    await store.append(ref, [said, { ...said, message: { role: "user", content: "x".repeat(300_000) } }], {
      idempotencyKey: "k",
      windowFromSeq: 2,
    });
  await store.fork.fork(ref, fork, { sessionId: "fork", atSeq: 3 });
  expect(await store.fork.sharers?.(ref, [1, 2, 3])).toEqual([{ ref: fork, sessionId: "fork", seqs: [1, 2, 3] }]);
  await store.append(fork, [{ ...said, id: "in the fork" }]);
  expect(await through(store.read(fork, { order: "descending", limit: 2 }))).toBe(1);
  expect((await store.readWindow(fork)).records).toHaveLength(4);
  const filters = { agentId: "main", keyPrefix: "agent", sinceMs: 1, untilMs: 4e12, state: "any" } as const;
  expect((await store.list(filters)).sessions).toHaveLength(3);
  expect((await store.list({ sort: "key", limit: 1 })).nextCursor).not.toBeNull();
  const search = store.search ?? expect.unreachable();
  expect(await search.lag()).toBeGreaterThan(0);
  expect(await through(search.search({ text: "needle" }))).toBeGreaterThan(0);
  expect(await through(search.search({ anyOf: ["needles", "absent"] }))).toBeGreaterThan(0);
  expect(await through(search.search({ anyOf: ["needles"], key: fork.key, sessionId: "fork" }))).toBeGreaterThan(0);
  expect(await through(search.search({ text: "needle", key: fork.key, role: "user", sinceMs: 1 }))).toBeGreaterThan(0);
  await search.rebuild?.();
  await store.redact(ref, ["chosen"], { reason: "test" });
  await store.move({ ...ref, key: "agent:main:old" }, { kind: "rename", key: "agent:main:new" });
  await store.remove({ ...ref, key: "agent:main:new" });
  const importedFrom = { format: "pi", sessionId: "source" };
  await store.append(ref, [], { entry: { importedFrom } });
  expect((await store.list({ importedFrom: { format: "pi", sourceId: "SOURCE" } })).sessions).toHaveLength(1);
  await store.remove(ref, { purge: true });
  expect((await store.list({ importedFrom: { format: "pi", sourceId: "source" } })).purgedAtMs).toBeGreaterThan(0);
  for await (const _page of store.watch.watch(fork, { afterSeq: 0, signal: new AbortController().signal })) break;
  // The purge leaves words in the index, which only the owner of the tables may note.
  const findings = await Array.fromAsync(store.maintenance.verify({ full: true }));
  expect(findings.filter(({ code }) => code !== "ERASURE_INCOMPLETE")).toEqual([]);
  await through(store.maintenance.repair());
  if (isOwner) await store.maintenance.backup(join(folder, "store.sql"));
}

describe.skipIf(url === "")(
  `names in a schema of somebody else${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    const name = `trapped_${newSchema()}`;
    const evil = "evil";
    let folder: string;

    const withPath = (path: string, role?: string): string => {
      const changed = new URL(url);
      changed.pathname = `/${name}`;
      if (role !== undefined) [changed.username, changed.password] = [role, "secret"];
      changed.searchParams.set("options", `-c search_path=${path}`);
      return changed.href;
    };

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "throughline-path-"));
      await withClient(url, (client) => client.query(`CREATE DATABASE ${name}`));
      await withClient(withPath("pg_catalog"), (client) => client.query(trap(evil)));
    });
    afterAll(async () => {
      await withClient(url, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
      await rm(folder, { recursive: true });
    });

    it("the traps work: a statement that leaves its names open falls into one", async () => {
      await withClient(withPath(evil), async (client) => {
        for (const open of [
          "SELECT 1.5::float8 * 1000",
          "SELECT unnest(ARRAY[1::bigint])",
          "SELECT ARRAY['a'] || 'b'::text",
        ])
          await expect(client.query(open)).rejects.toThrow("trapped");
      });
    });

    it("the owner's program is made, used, checked and copied without calling one", { tags: ["slow"] }, async () => {
      const schema = newSchema();
      await using store = createPostgresStore({
        url: withPath(evil),
        schema,
        partitions: 2,
        rowSecurity: true,
        pollMs: 50,
      });
      await useAll(store, folder, true);
      const script = await readFile(join(folder, "store.sql"), "utf8");
      await withClient(withPath(evil), async (client) => {
        await client.query(`DROP SCHEMA "${schema}" CASCADE`);
        await client.query(script);
      });
      await using copy = createPostgresStore({ url: withPath(evil), schema, rowSecurity: true });
      expect((await copy.readWindow(fork)).records).toHaveLength(4);
    });

    it("a role of a secured store works without calling one", { tags: ["slow"] }, async () => {
      const schema = newSchema();
      const role = `role_${schema}`;
      await using owner = createPostgresStore({ url: withPath("public"), schema, partitions: 2, rowSecurity: true });
      await owner.list();
      await withClient(withPath("public"), (client) =>
        client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'; ${readmeGrants(schema, role)}
          GRANT USAGE ON SCHEMA ${evil} TO ${role};
          INSERT INTO "${schema}".agent_roles (role_name, agent_id) VALUES ('${role}', 'main')`),
      );
      await using store = createPostgresStore({ url: withPath(evil, role), schema, migrate: false, rowSecurity: true });
      await useAll(store, folder, false);
      await store.close();
      await owner.close();
      await withClient(withPath("public"), (client) => client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
    });

    it("temporary tables and functions of a lent connection take no table's place", { tags: ["slow"] }, async () => {
      const schema = newSchema();
      const pool = new pg.Pool({ connectionString: withPath(evil), max: 2 });
      pool.on("error", () => undefined);
      const tables = ["sessions", "records", "keyed_appends", "store_info", "agents"];
      const shadows = tables.map((table) => `CREATE TEMP TABLE ${table} (x int);`).join(" ");
      pool.on("connect", (client) => {
        void client.query(
          `${shadows} CREATE FUNCTION pg_temp.append_1(integer, text[]) RETURNS text LANGUAGE sql AS 'SELECT 1::text'`,
        );
      });
      await using store = createPostgresStore({ pool, schema, partitions: 2 });
      await useAll(store, await mkdtemp(join(folder, "temp-")), true);
      await pool.end();
    });

    it("a search_path with another schema before pg_catalog is refused before anything is made", async () => {
      await using store = createPostgresStore({ url: withPath(`${evil},pg_catalog`), schema: newSchema() });
      const error: unknown = await store.list().catch((reason: unknown) => reason);
      expect(ThroughlineError.isInstance(error) && [error.code, error.message, error.remedy]).toEqual([
        "STORE_UNSUPPORTED",
        'The search_path names the schema "evil" before pg_catalog.',
        "ALTER ROLE … SET search_path, without pg_catalog in it: PostgreSQL then searches pg_catalog first.",
      ]);
    });
  },
);
