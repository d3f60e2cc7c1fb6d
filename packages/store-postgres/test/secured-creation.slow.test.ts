import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ThroughlineError, type AppendDraft, type SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import type { LayoutName } from "../src/layout.ts";
import { migrateSchema } from "../src/migrate-schema.ts";
import { schemaSteps } from "../src/schema.ts";
import { endingPool } from "./ending-pool.ts";
import { migrationPlace } from "./migrate-beside.ts";
import { foreign, openSecured, take } from "./secured-store.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

const agents = [
  ["main", "agent:main:own", "mine", "plain"],
  ["other", "agent:other:one", "theirs", "Zanzibar"],
] as const;

function draftsOf(text: string): readonly AppendDraft[] {
  const line = '{"type":"message","id":"x","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","n":1.0}';
  const say = { type: "message", message: { role: "user", content: text } };
  return [say, { source: line }, say];
}

/** Sessions of two agents: records with a key and an imported line, and a fork of a session that is purged. */
async function fill(store: PostgresStore): Promise<void> {
  for (const [agentId, key, id, text] of agents) {
    const ref: SessionRef = { namespace: "", agentId, key };
    await store.save(ref, { sessionId: id, label: text }, { ifRevision: null });
    await store.append(ref, draftsOf(text), { idempotencyKey: `key of ${id}`, entry: { model: text } });
    const gone = { ...ref, key: `agent:${agentId}:gone` };
    await store.save(gone, { sessionId: `${id}-gone` }, { ifRevision: null });
    await store.append(gone, draftsOf(text).slice(0, 1));
    await store.fork.fork(gone, { ...ref, key: `agent:${agentId}:heir` }, { sessionId: `${id}-heir` });
    await store.remove(gone, { purge: true });
  }
}

async function makeSecured(layout: LayoutName = "plain"): Promise<string> {
  const schema = newSchema();
  await using store = createPostgresStore({ url, schema, partitions: 2, rowSecurity: true, layout, notify: false });
  await fill(store);
  return schema;
}

async function textsOf(store: PostgresStore, ref: SessionRef): Promise<string> {
  const texts: string[] = [];
  for await (const { records } of store.read(ref, { payload: "source" }))
    for (const { record } of records)
      texts.push((record["message"] as { readonly content: string } | undefined)?.content ?? "imported");
  return texts.join(" ");
}

/** What `fill` stored, and that a repeat with a key of then is one. */
async function expectWhole(store: PostgresStore): Promise<void> {
  for (const [agentId, key, id, text] of agents) {
    const ref: SessionRef = { namespace: "", agentId, key };
    expect(await textsOf(store, ref)).toBe(`${text} imported ${text}`);
    expect(await textsOf(store, { ...ref, key: `agent:${agentId}:heir` })).toBe(text);
    expect((await store.load(ref))?.entry).toMatchObject({ sessionId: id, label: text, model: text });
    const again = await store.append(ref, draftsOf(text), { idempotencyKey: `key of ${id}`, entry: { model: text } });
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
async function expectSecured(schema: string, layout: LayoutName = "plain"): Promise<void> {
  expect(await openTables(schema)).toBe(0);
  const fixture = await openSecured(url, { schema, isNew: false, layout });
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
  `a schema with row security${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it.each(["plain", "tenant"] as const)(
      "stays secured when its owner opens it without asking for that, layout %s",
      async (layout) => {
        const schema = await makeSecured(layout);
        await using store = createPostgresStore({ url, schema });
        await expectWhole(store);
        await expectSecured(schema, layout);
      },
    );

    it.each(["plain", "tenant"] as const)("is made only where it is asked for, layout %s", async (layout) => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2, layout });
      await fill(store);
      await expectWhole(store);
      expect(await openTables(schema)).toBeGreaterThan(0);
    });

    it("refuses a program that may not migrate and asks for row security until the owner came by", async () => {
      const schema = await makeSecured();
      const refusal = async (options: { readonly rowSecurity?: boolean } = {}): Promise<unknown> => {
        await using store = createPostgresStore({ url, schema, migrate: false, ...options });
        return store.list().then(
          () => "opened",
          (error: unknown) => (ThroughlineError.isInstance(error) ? [error.code, error.remedy] : error),
        );
      };
      expect(await refusal({ rowSecurity: true })).toBe("opened");
      const info = `"${schema}".store_info`;
      await withClient(url, (client) => client.query(`UPDATE ${info} SET value = 'x' WHERE name = 'row_security'`));
      // The policies of another version are in force: tables are closed, and the rest is said.
      expect(await openTables(schema)).toBe(0);
      expect(await refusal()).toBe("opened");
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
      const where = migrationPlace(url, schema);
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
    });

    it.each(testSize<readonly ("during" | "before")[]>({ short: ["during"], long: ["during", "before"] }))(
      "whose maker's connection ends %s any statement is made by the next owner, whole and secured",
      async (phase) => {
        const inner = new pg.Pool({ connectionString: url, max: 2 });
        inner.on("error", () => undefined);
        const connections = endingPool(url, inner, phase);
        let ended = 0;
        const step = testSize({ short: 23, long: 1 });
        for (let at = 1; ; at += step) {
          const schema = newSchema();
          const options = { schema, partitions: 2, rowSecurity: true, notify: false };
          Object.assign(connections, { at, sent: 0 });
          const broken = createPostgresStore({ ...options, pool: connections.pool, timeoutMs: 3000 });
          const error: unknown = await broken.list().then(
            () => null,
            (reason: unknown) => reason,
          );
          if (error !== null && !(ThroughlineError.isInstance(error) && error.code === "STORE_UNREACHABLE"))
            throw error;
          const { sent } = connections;
          connections.at = 0;
          if (error !== null) ended += 1;
          await using store = createPostgresStore({ ...options, url });
          await fill(store);
          expect(await textsOf(store, { namespace: "", agentId: "other", key: "agent:other:heir" })).toBe("Zanzibar");
          expect(await openTables(schema)).toBe(0);
          // All of it once, in the middle.
          if (at === 24) await expectWhole(store);
          await store.close();
          await withClient(url, (client) => client.query(`DROP SCHEMA "${schema}" CASCADE`));
          if (sent < at) break;
        }
        expect(ended).toBeGreaterThan(testSize({ short: 1, long: 10 }));
        await inner.end();
      },
    );

    it("leaves no file of a backup whose connection ends at any statement, and no schema of a restore that breaks off", async () => {
      const folder = await mkdtemp(join(tmpdir(), "throughline-broken-backup-"));
      const schema = await makeSecured();
      const inner = new pg.Pool({ connectionString: url, max: 2 });
      inner.on("error", () => undefined);
      const connections = endingPool(url, inner, "during");
      await using store = createPostgresStore({ pool: connections.pool, schema, notify: false, timeoutMs: 3000 });
      await store.list();
      const path = join(folder, "store.sql");
      let ended = 0;
      for (let at = 1; ; at += testSize({ short: 7, long: 1 })) {
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
      expect(ended).toBeGreaterThan(testSize({ short: 3, long: 20 }));
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
    });
  },
);
