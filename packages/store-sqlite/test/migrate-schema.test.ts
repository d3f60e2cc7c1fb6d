import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { migrateSchema } from "../src/migrate-schema.ts";
import { defaultDriver } from "../src/open-connection.ts";
import { schemaSteps } from "../src/schema.ts";
import type { SchemaStep } from "../src/schema.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

const next: SchemaStep = { version: 4, sql: "CREATE TABLE two (a TEXT) STRICT; INSERT INTO two VALUES ('new');" };
const failing: SchemaStep = { version: 5, sql: "CREATE TABLE three (a TEXT) STRICT; INSERT INTO nowhere VALUES (1);" };

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
      4,
      false,
    ]);
    const backup = new Database(`${path}.v3.backup`, { readonly: true });
    expect([
      tablesOf(backup),
      backup.prepare("SELECT count(*) FROM store_records").pluck().get(),
      backup.pragma("user_version", { simple: true }),
    ]).toEqual([[], 1, 3]);
    backup.close();
    expect(statSync(`${path}.v3.backup`).mode & 0o777).toBe(0o600);
    migrateSchema(
      database,
      path,
      [...schemaSteps, next, { ...failing, sql: "CREATE TABLE three (a TEXT) STRICT" }],
      defaultDriver,
    );
    expect([tablesOf(database), database.pragma("user_version", { simple: true })]).toEqual([["three", "two"], 5]);
    database.close();
    expect(readdirSync(join(path, "..")).toSorted()).toEqual(["store.db", "store.db.v3.backup", "store.db.v4.backup"]);
    // The build that knows one step finds the newer version in the file's header, and says so.
    await using older = createSqliteStore({ path });
    await expect(older.list()).rejects.toMatchObject({ code: "STORE_VERSION_UNSUPPORTED" });
  });

  it("copy nothing when there is nothing to do, and nothing of an empty database", async () => {
    const path = await storeOfToday();
    const before = readFileSync(path);
    const database = new Database(path);
    migrateSchema(database, path, schemaSteps, defaultDriver);
    database.close();
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(existsSync(`${path}.v3.backup`)).toBe(false);
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
