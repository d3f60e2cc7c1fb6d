import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { migrateSchema } from "../src/migrate-schema.ts";
import { defaultDriver } from "../src/connection.ts";
import { schemaSteps } from "../src/schema.ts";
import type { SchemaStep } from "../src/schema.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

const next: SchemaStep = { version: 7, sql: "CREATE TABLE two (a TEXT) STRICT; INSERT INTO two VALUES ('new');" };
const failing: SchemaStep = { version: 8, sql: "CREATE TABLE three (a TEXT) STRICT; INSERT INTO nowhere VALUES (1);" };

/** A store with one record, closed. */
async function storeOfToday(): Promise<string> {
  const path = join(testFolder(), "store.db");
  const store = createSqliteStore({ path });
  await store.append(await createSession(store, "a"), [say("kept")]);
  await store.close();
  return path;
}

function tablesOf(database: Database.Database): unknown[] {
  return database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('two', 'three') ORDER BY name")
    .pluck()
    .all();
}

describe("schema migrations", () => {
  it("copy the database first, then run each step in a transaction of its own, and go on after a failure", async () => {
    const path = await storeOfToday();
    const database = new Database(path);
    expect(() => migrateSchema(database, path, [...schemaSteps, next, failing], defaultDriver)).toThrow(/nowhere/);
    expect([tablesOf(database), database.pragma("user_version", { simple: true }), database.inTransaction]).toEqual([
      ["two"],
      7,
      false,
    ]);
    const backup = new Database(`${path}.v6.backup`, { readonly: true });
    expect([
      tablesOf(backup),
      backup.prepare("SELECT count(*) FROM store_records").pluck().get(),
      backup.pragma("user_version", { simple: true }),
    ]).toEqual([[], 1, 6]);
    backup.close();
    expect(statSync(`${path}.v6.backup`).mode & 0o777).toBe(0o600);
    migrateSchema(
      database,
      path,
      [...schemaSteps, next, { ...failing, sql: "CREATE TABLE three (a TEXT) STRICT" }],
      defaultDriver,
    );
    expect([tablesOf(database), database.pragma("user_version", { simple: true })]).toEqual([["three", "two"], 8]);
    database.close();
    expect(readdirSync(join(path, "..")).toSorted()).toEqual(["store.db", "store.db.v6.backup", "store.db.v7.backup"]);
    // The build that knows one step finds the newer version in the file's header, and says so.
    await using older = createSqliteStore({ path });
    await expect(older.list()).rejects.toMatchObject({ code: "STORE_VERSION_UNSUPPORTED" });
  });

  it("show the summaries of a store of schema 3, which hid two fields of them [SQL-03, SQL-14, SQL-15]", async () => {
    const path = join(testFolder(), "store.db");
    // Made by the command line of its time: append, checkpoint, compact.
    writeFileSync(path, gunzipSync(readFileSync(join(import.meta.dirname, "fixtures/schema-3.db.gz"))));
    const hidden = "SELECT (SELECT needs_summary_retry FROM compactions), (SELECT generated_by FROM checkpoints)";
    const asked = (): unknown => {
      const database = new Database(path, { readonly: true });
      try {
        return database.prepare(hidden).raw().all();
      } finally {
        database.close();
      }
    };
    expect(asked()).toEqual([[0, null]]);
    await using store = createSqliteStore({ path });
    expect((await store.list()).sessions).toMatchObject([{ messageCount: 20 }]);
    expect(asked()).toEqual([[1, "extractive"]]);
    expect(readdirSync(join(path, ".."))).toContain("store.db.v3.backup");
    const findings: unknown[] = [];
    for await (const finding of store.maintenance?.verify({ full: true }) ?? []) findings.push(finding);
    expect(findings).toEqual([]);
  });

  it.each([1, 2, 3, 4])(
    "hide what an import keeps for itself from the view of sessions, in a store of schema %i too [SQL-04, SQL-14]",
    { tags: ["slow"] },
    async (version) => {
      const path = join(testFolder(), "store.db");
      const older = new Database(path);
      older.pragma("page_size = 8192");
      migrateSchema(older, path, schemaSteps.slice(0, version), defaultDriver);
      const columns = "namespace, agent_id, key, session_id, last_seq";
      const insert = older.prepare(
        `INSERT INTO store_sessions (${columns}, archived, revision, fence, message_count, created_at_ms, updated_at_ms,
           updated_slot, ids_to_seq, keyed_next, keyed_rows, keyed_sweep_at, keyed_horizon_ms)
         VALUES (?, 'main', ?, ?, ?, 0, 1, 0, 0, 1, 2, 0, 0, 1, 0, 5120, -1)`,
      );
      const sessions = [
        ["", "agent:main:a", 0],
        ["", "agent:main:imports:mine", 0],
        ["throughline.imports", "agent:main:imports:sources:1", 0],
        ["team.imports", "agent:main:imports:running:1", 0],
        ["team.imports", "agent:main:imports:with records", 3],
        ["team.imports", "agent:main:chat", 0],
      ] as const;
      for (const [index, [namespace, key, lastSeq]] of sessions.entries()) {
        const { lastInsertRowid } = insert.run(namespace, key, `s${index}`, lastSeq);
        older
          .prepare("INSERT INTO store_entries (session, entry) VALUES (?, ?)")
          .run(lastInsertRowid, `{"sessionId":"s${index}"}`);
      }
      const shown = "SELECT session_id FROM sessions ORDER BY session_id";
      expect(older.prepare(shown).pluck().all()).toHaveLength(sessions.length);
      older.close();
      await using store = createSqliteStore({ path });
      // The store itself still has them, for the next import.
      expect((await store.list({ namespace: "throughline.imports" })).sessions).toHaveLength(1);
      const database = new Database(path, { readonly: true });
      expect(database.prepare(shown).pluck().all()).toEqual(["s0", "s1", "s4", "s5"]);
      expect(database.pragma("user_version", { simple: true })).toBe(schemaSteps.at(-1)?.version);
      database.close();
    },
  );

  it("copy nothing when there is nothing to do, and nothing of an empty database", async () => {
    const path = await storeOfToday();
    const before = readFileSync(path);
    const database = new Database(path);
    migrateSchema(database, path, schemaSteps, defaultDriver);
    database.close();
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(existsSync(`${path}.v6.backup`)).toBe(false);
  });

  it("are refused when a step that ran differs from the one this build has", async () => {
    const path = await storeOfToday();
    const database = new Database(path);
    const changed = schemaSteps.map((step) => ({ ...step, sql: `${step.sql} ` }));
    expect(() => migrateSchema(database, path, [...changed, next], defaultDriver)).toThrow(
      expect.objectContaining({ code: "STORE_VERSION_UNSUPPORTED" }),
    );
    expect(tablesOf(database)).toEqual([]);
    database.close();
  });
});
