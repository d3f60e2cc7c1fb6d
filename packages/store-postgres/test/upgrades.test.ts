import { readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ThroughlineError, type SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { migrateSchema } from "../src/migrate-schema.ts";
import { schemaSteps } from "../src/schema.ts";
import { endingPool } from "./ending-pool.ts";
import { foreign, openSecured, take } from "./secured-store.ts";
import { migrationPlace } from "./migrate-beside.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

/** Each was made by the code of its time, and dumped. */
const fixtures: readonly (readonly [name: string, isSecured: boolean])[] = [
  ["schema-1", false],
  ["schema-1-secured-first", true],
  ["schema-1-secured", true],
  ["schema-2", false],
  ["schema-2-secured", true],
];

async function restore(name: string): Promise<string> {
  const schema = newSchema();
  const sql = readFileSync(join(import.meta.dirname, "fixtures", `${name}.sql`), "utf8");
  await withClient(url, (client) => client.query(sql.replaceAll(/\bfixture\b/g, schema)));
  return schema;
}

async function textsOf(store: PostgresStore, ref: SessionRef): Promise<string> {
  const texts: string[] = [];
  for await (const { records } of store.read(ref, { payload: "source" }))
    for (const { record } of records)
      texts.push((record["message"] as { readonly content: string } | undefined)?.content ?? "imported");
  return texts.join(" ");
}

/** What every fixture holds, and that a repeat with a key of then is one. */
async function expectWhole(store: PostgresStore): Promise<void> {
  for (const [agentId, key, id, text] of [
    ["main", "agent:main:own", "mine", "plain"],
    ["other", "agent:other:one", "theirs", "Zanzibar"],
  ] as const) {
    const ref: SessionRef = { namespace: "", agentId, key };
    expect(await textsOf(store, ref)).toBe(`${text} imported ${text}`);
    expect(await textsOf(store, { ...ref, key: `agent:${agentId}:heir` })).toBe(text);
    expect((await store.load(ref))?.entry).toMatchObject({ sessionId: id, label: text, model: text });
    const line = '{"type":"message","id":"x","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","n":1.0}';
    const say = { type: "message", message: { role: "user", content: text } };
    const again = await store.append(ref, [say, { source: line }, say], {
      idempotencyKey: `key of ${id}`,
      entry: { model: text },
    });
    expect(again.replayed).toBe(true);
  }
  const findings: unknown[] = [];
  for await (const finding of store.maintenance.verify({ full: true })) findings.push(finding);
  expect(findings).toEqual([]);
}

/** The tables of the schema that row security does not protect. */
async function openTables(schema: string): Promise<number> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity`,
      [schema],
    ),
  );
  return rows[0]?.count ?? -1;
}

/** That a role of one agent sees nothing of the other, in any table. */
async function expectSecured(schema: string): Promise<void> {
  expect(await openTables(schema)).toBe(0);
  const fixture = await openSecured(url, { schema, isNew: false });
  try {
    await withClient(fixture.roleUrl, async (client) => {
      const tables = await client.query<{ name: string }>(
        "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1",
        [schema],
      );
      const seen: string[] = [];
      for (const { name } of tables.rows)
        seen.push((await take(client, `SELECT t::text FROM "${schema}"."${name}" t`)).said);
      expect(seen.join("\n")).toContain("plain");
      expect(seen.join("\n")).not.toMatch(foreign);
    });
  } finally {
    await fixture.dispose();
  }
}

describe.skipIf(url === "")(
  `a store of an earlier version${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it.each(fixtures)(
      "%s is brought up to date by its owner, whole, and secured as before: %s",
      { tags: ["slow"] },
      async (name, isSecured) => {
        const schema = await restore(name);
        // Not asked for: a store that was secured stays so.
        await using store = createPostgresStore({ url, schema });
        await expectWhole(store);
        if (isSecured) await expectSecured(schema);
        else expect(await openTables(schema)).toBeGreaterThan(0);
      },
    );

    it(
      "a program that may not migrate and asks for row security is refused until the owner came by",
      { tags: ["slow"] },
      async () => {
        const schema = await restore("schema-1-secured");
        const refusal = async (options: { readonly rowSecurity?: boolean } = {}): Promise<unknown> => {
          await using store = createPostgresStore({ url, schema, migrate: false, ...options });
          return store.list().then(
            () => "opened",
            (error: unknown) => (ThroughlineError.isInstance(error) ? [error.code, error.remedy] : error),
          );
        };
        expect(await refusal()).toEqual(["STORE_NOT_FOUND", expect.any(String)]);
        const where = migrationPlace(url, schema);
        await migrateSchema(where, { partitions: 2 });
        // At the newest version, but under the policies of an earlier one: tables are closed, and the rest is said.
        expect(await openTables(schema)).toBe(0);
        expect(await refusal({ rowSecurity: true })).toEqual([
          "STORE_UNSUPPORTED",
          "Open the store once as the owner of its tables, with rowSecurity: true and without migrate: false.",
        ]);
        await using owner = createPostgresStore({ url, schema });
        await owner.list();
        expect(await refusal({ rowSecurity: true })).toBe("opened");
        // A table that a later version adds is closed in the step that makes it, and one that somebody adds by the next owner.
        const later = {
          version: 1000,
          oldestProgram: 1,
          sql: (quoted: string) => `CREATE TABLE ${quoted}.later AS SELECT 'Zanzibar' AS secret`,
        };
        await migrateSchema(where, { partitions: 2 }, () => [...schemaSteps("plain"), later]);
        expect(await openTables(schema)).toBe(0);
        await withClient(url, (client) =>
          client.query(`CREATE TABLE "${schema}".by_hand AS SELECT 'Zanzibar' AS secret`),
        );
        expect(await refusal({ rowSecurity: true })).toEqual(["STORE_UNSUPPORTED", expect.any(String)]);
        await using again = createPostgresStore({ url, schema });
        await again.list();
        await expectSecured(schema);
        await where.end();
      },
    );

    it("a schema whose first step was worded otherwise is refused and not touched", async () => {
      const schema = await restore("schema-before-1");
      const dump = async (): Promise<unknown> =>
        withClient(url, async (client) => (await client.query(`SELECT * FROM "${schema}".store_info ORDER BY 1`)).rows);
      const before = await dump();
      await using store = createPostgresStore({ url, schema, rowSecurity: true });
      await expect(store.list()).rejects.toMatchObject({ code: "STORE_VERSION_UNSUPPORTED" });
      expect(await dump()).toEqual(before);
    });

    it.each(testSize<readonly ("during" | "before")[]>({ short: ["during"], long: ["during", "before"] }))(
      "the connection ends %s any statement of the upgrade: the next owner finishes it, whole and secured",
      { tags: ["slow"] },
      async (phase) => {
        const inner = new pg.Pool({ connectionString: url, max: 2 });
        inner.on("error", () => undefined);
        const connections = endingPool(url, inner, phase);
        let ended = 0;
        for (let at = 1; ; at += testSize({ short: 7, long: 1 })) {
          const schema = await restore("schema-1-secured-first");
          Object.assign(connections, { at, sent: 0 });
          const broken = createPostgresStore({ pool: connections.pool, schema, notify: false, timeoutMs: 3000 });
          const error: unknown = await broken.list().then(
            () => null,
            (reason: unknown) => reason,
          );
          if (error !== null && !(ThroughlineError.isInstance(error) && error.code === "STORE_UNREACHABLE"))
            throw error;
          const { sent } = connections;
          connections.at = 0;
          if (error !== null) ended += 1;
          await using store = createPostgresStore({ url, schema, notify: false });
          expect(await textsOf(store, { namespace: "", agentId: "other", key: "agent:other:heir" })).toBe("Zanzibar");
          expect(await openTables(schema)).toBe(0);
          // All of it once, in the middle.
          if (at === 7) await expectWhole(store);
          await store.close();
          await withClient(url, (client) => client.query(`DROP SCHEMA "${schema}" CASCADE`));
          if (sent < at) break;
        }
        expect(ended).toBeGreaterThan(testSize({ short: 1, long: 10 }));
        await inner.end();
      },
    );

    it(
      "a backup whose connection ends at any statement leaves no file; a restore that breaks off leaves no schema",
      { tags: ["slow"] },
      async () => {
        const folder = await mkdtemp(join(tmpdir(), "throughline-broken-backup-"));
        const schema = await restore("schema-1-secured");
        const inner = new pg.Pool({ connectionString: url, max: 2 });
        inner.on("error", () => undefined);
        const connections = endingPool(url, inner, "during");
        await using store = createPostgresStore({ pool: connections.pool, schema, notify: false, timeoutMs: 3000 });
        await store.list();
        const path = join(folder, "store.sql");
        let ended = 0;
        for (let at = 1; ; at++) {
          Object.assign(connections, { at, sent: 0 });
          const error: unknown = await store.maintenance.backup(path).then(
            () => null,
            (reason: unknown) => reason,
          );
          connections.at = 0;
          if (error === null) break;
          expect(ThroughlineError.isInstance(error) && error.code).toBe("STORE_UNREACHABLE");
          expect(await readdir(folder)).toEqual([]);
          ended += 1;
        }
        expect(ended).toBeGreaterThan(20);
        await store.close();
        await inner.end();
        const script = await readFile(path, "utf8");
        const statements = script.split(";\n");
        await withClient(url, (client) => client.query(`DROP SCHEMA "${schema}" CASCADE`));
        const step = testSize({ short: Math.ceil(statements.length / 4), long: 1 });
        for (let cut = 1; cut < statements.length - 1; cut += step) {
          // The client is gone in the middle of the script.
          await withClient(url, (client) => client.query(statements.slice(0, cut).join(";\n")).catch(() => undefined));
          const left = await withClient(url, (client) =>
            client.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema]),
          );
          expect(left.rowCount).toBe(0);
        }
        await withClient(url, (client) => client.query(script));
        await using copy = createPostgresStore({ url, schema, rowSecurity: true });
        await expectWhole(copy);
        await expectSecured(schema);
        await rm(folder, { recursive: true });
      },
    );
  },
);
