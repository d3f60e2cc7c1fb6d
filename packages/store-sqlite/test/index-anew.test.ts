import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { SqliteDriver } from "../src/connection.ts";
import { describe, expect, it } from "vitest";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

async function found(store: SessionStore, text: string): Promise<string[]> {
  const hits: string[] = [];
  for await (const { sessionId, seq } of store.search?.search({ text, limit: 1000 }) ?? [])
    hits.push(`${sessionId}/${seq}`);
  return hits.toSorted();
}

/** What the file says of its tables and of the settings of the index. */
function schemaOf(path: string): unknown {
  const database = new Database(path);
  try {
    const tables = database.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
    return [tables, database.prepare("SELECT * FROM store_search_config ORDER BY k").all()];
  } finally {
    database.close();
  }
}

/** A driver that counts the rows that are changed in each turn of the event loop. */
function countingDriver(): { readonly driver: SqliteDriver; most(): number; total(): number } {
  let [inTurn, most, total] = [0, 0, 0];
  const driver: SqliteDriver = (path, options) => {
    const database = new Database(path, options);
    const prepare = database.prepare.bind(database) as (sql: string) => { run(...values: unknown[]): unknown };
    database.prepare = ((sql: string) => {
      const statement = prepare(sql);
      const run = statement.run.bind(statement);
      statement.run = (...values) => {
        const result = run(...values) as { readonly changes: number };
        if (inTurn === 0) setImmediate(() => (inTurn = 0));
        inTurn += result.changes;
        total += result.changes;
        most = Math.max(most, inTurn);
        return result;
      };
      return statement;
    }) as typeof database.prepare;
    return database;
  };
  return { driver, most: () => most, total: () => total };
}

describe("making the indexes anew", () => {
  const records = 12_000;

  async function fill(path: string): Promise<void> {
    await using store = createSqliteStore({ path, defaultDurability: "process", searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    for (let from = 0; from < records; from += 1000)
      await store.append(
        ref,
        Array.from({ length: 1000 }, (_, index) => say(`word n${from + index}`)),
      );
    expect(await found(store, "n77")).toEqual(["session-a/78"]);
  }

  it(
    "changes a bounded number of rows between two turns of the event loop, and nothing of the schema",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const path = join(testFolder(), "store.db");
      await fill(path);
      const before = schemaOf(path);
      const { driver, most, total } = countingDriver();
      {
        await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
        await store.search?.rebuild?.();
        expect(await found(store, "n77")).toEqual(["session-a/78"]);
        expect(await store.search?.lag()).toBe(0);
      }
      expect(most()).toBeLessThan(5000);
      // The control: so many rows of each index were taken out and made anew.
      expect(total()).toBeGreaterThan(2 * records);
      expect(schemaOf(path)).toEqual(before);
      const database = new Database(path);
      expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
      const children = database.prepare("SELECT count(*) FROM store_children").pluck();
      expect(children.get()).toBe(records - 1);
      database.close();
    },
  );

  it("is done by two at once, beside a writer and a search", { tags: ["slow"], timeout: 60_000 }, async () => {
    const path = join(testFolder(), "store.db");
    await fill(path);
    await using one = createSqliteStore({ path, searchFill: "on-demand" });
    await using two = createSqliteStore({ path });
    const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
    const [, , , meanwhile] = await Promise.all([
      one.search?.rebuild?.(),
      two.search?.rebuild?.(),
      two.append(ref, [say("late word")]),
      found(one, "n78"),
    ]);
    expect(meanwhile).toEqual(["session-a/79"]);
    for (const store of [one, two]) {
      expect(await found(store, "late")).toEqual([`session-a/${records + 1}`]);
      expect(await found(store, "n77")).toEqual(["session-a/78"]);
    }
    const database = new Database(path);
    expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
    database.close();
  });

  it("leaves nothing of what is redacted in an index that was put aside by somebody who came to no end", async () => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    const kept = (): boolean =>
      readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes("zqsecretword"));
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("zqsecretword", { id: "secret" }), say("word")]);
    expect(await found(store, "zqsecretword")).toHaveLength(1);
    const database = new Database(path);
    // What a rebuild leaves that was killed.
    database.exec(`CREATE TABLE store_search_old (id INTEGER PRIMARY KEY, block BLOB);
      INSERT INTO store_search_old SELECT id, block FROM store_search_data`);
    await store.redact(ref, ["secret"], { reason: "test" });
    expect(kept()).toBe(false);
    const isThere = database.prepare("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'store_search_old%'").pluck();
    expect(isThere.get()).toBe(0);
    database.exec("CREATE TABLE store_search_old_sizes (id INTEGER PRIMARY KEY, sz BLOB)");
    await store.search?.rebuild?.();
    expect(isThere.get()).toBe(0);
    expect(await found(store, "word")).toEqual(["session-a/2"]);
    database.close();
  });
});
