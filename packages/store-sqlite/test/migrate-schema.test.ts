import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { migrateSchema } from "../src/migrate-schema.ts";
import { defaultDriver } from "../src/open-connection.ts";
import { schemaSteps } from "../src/schema.ts";
import type { SchemaStep } from "../src/schema.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

const next: SchemaStep = { version: 5, sql: "CREATE TABLE two (a TEXT) STRICT; INSERT INTO two VALUES ('new');" };
const failing: SchemaStep = { version: 6, sql: "CREATE TABLE three (a TEXT) STRICT; INSERT INTO nowhere VALUES (1);" };

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
  it("copy the database first, then run each step in a transaction of its own, and go on after a failure [SQL-14]", async () => {
    const path = await storeOfToday();
    const database = new Database(path);
    expect(() => migrateSchema(database, path, [...schemaSteps, next, failing], defaultDriver)).toThrow(/nowhere/);
    expect([tablesOf(database), database.pragma("user_version", { simple: true }), database.inTransaction]).toEqual([
      ["two"],
      5,
      false,
    ]);
    const backup = new Database(`${path}.v4.backup`, { readonly: true });
    expect([
      tablesOf(backup),
      backup.prepare("SELECT count(*) FROM store_records").pluck().get(),
      backup.pragma("user_version", { simple: true }),
    ]).toEqual([[], 1, 4]);
    backup.close();
    expect(statSync(`${path}.v4.backup`).mode & 0o777).toBe(0o600);
    migrateSchema(
      database,
      path,
      [...schemaSteps, next, { ...failing, sql: "CREATE TABLE three (a TEXT) STRICT" }],
      defaultDriver,
    );
    expect([tablesOf(database), database.pragma("user_version", { simple: true })]).toEqual([["three", "two"], 6]);
    database.close();
    expect(readdirSync(join(path, "..")).toSorted()).toEqual(["store.db", "store.db.v4.backup", "store.db.v5.backup"]);
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

  it("copy nothing when there is nothing to do, and nothing of an empty database", async () => {
    const path = await storeOfToday();
    const before = readFileSync(path);
    const database = new Database(path);
    migrateSchema(database, path, schemaSteps, defaultDriver);
    database.close();
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(existsSync(`${path}.v4.backup`)).toBe(false);
  });

  it("are refused when a step that ran differs from the one this build has [SQL-14]", async () => {
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
