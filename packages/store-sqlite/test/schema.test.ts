import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { Finding } from "@throughline/core";
import { createSqliteStore, restoreSqliteBackup } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { schemaObjects, schemaVersion } from "../src/schema.ts";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

/** Name and content of everything in a folder. */
function contents(folder: string): readonly string[] {
  const hashOf = (name: string): string =>
    createHash("sha256")
      .update(readFileSync(join(folder, name)))
      .digest("hex");
  return readdirSync(folder)
    .toSorted()
    .map((name) => `${name} ${hashOf(name)}`);
}

describe("the schema", () => {
  it.each([
    ["newer", schemaVersion + 1, /Upgrade/],
    ["far newer", 99, /Upgrade/],
    ["older", schemaVersion - 1, /export its sessions/],
    ["unknown", 0, /export its sessions/],
  ])("of a %s version is refused, and every byte of the file stays", async (_what, version, remedy) => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    {
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      await store.append(await createSession(store, "a"), [say("kept")]);
    }
    const other = new Database(path);
    other.pragma("journal_mode = DELETE");
    other.pragma(`user_version = ${version}`);
    other.close();
    const before = contents(folder);
    const refusal = {
      code: "STORE_VERSION_UNSUPPORTED",
      outcome: "not-applied",
      remedy: expect.stringMatching(remedy),
    };
    await using store = createSqliteStore({ path });
    await expect(store.list()).rejects.toMatchObject(refusal);
    await expect(store.append(refOf("a"), [say("never")])).rejects.toMatchObject(refusal);
    await expect(store.remove(refOf("a"), { purge: true })).rejects.toMatchObject(refusal);
    expect(contents(folder)).toEqual(before);
  });

  it("is listed as SQLite keeps it", async () => {
    const path = join(testFolder(), "store.db");
    {
      await using store = createSqliteStore({ path });
      await store.list();
    }
    const database = new Database(path, { readonly: true });
    const kept = database.prepare('SELECT type, name, tbl_name AS "table", sql FROM sqlite_schema ORDER BY name').all();
    database.close();
    expect(kept).toEqual(schemaObjects.toSorted((one, other) => (one.name < other.name ? -1 : 1)));
  });
});

/** Flips one bit of a text in `sqlite_schema`, at the first place of the text behind `from`. */
function flip(path: string, from: string, text: string): void {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(text, bytes.indexOf(from));
  expect(at).toBeGreaterThan(0);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  writeFileSync(path, bytes);
}

async function findingsOf(findings: AsyncIterable<Finding> | undefined): Promise<readonly string[]> {
  const found = await Array.fromAsync(findings ?? []);
  return found.map(({ code, message }) => `${code} ${message}`);
}

describe("a schema of which one bit changed", () => {
  const current = "INDEX store_sessions_current";
  const flips = [
    ["the WHERE clause of an index", current, "0", "store_sessions_current"],
    ["a column of an index", "INDEX store_sessions_updated", "archived", "is not a SQLite database"],
    ["the collation of an index", "INDEX store_sessions_id", "NOCASE", "store_sessions_id"],
    ["the order of an index", "INDEX store_sessions_updated", "DESC", "is not a SQLite database"],
    ["a table of the search index", "'store_search_idx'", "ROWID", "is not a SQLite database"],
    ["the type of a column", "TABLE store_entries", "ANY", "is not a SQLite database"],
    ["a view", "VIEW sessions", "s.key", "sessions"],
  ] as const;

  async function damaged(from: string, text: string): Promise<string> {
    const path = join(testFolder(), "store.db");
    {
      await using store = createSqliteStore({ path });
      for (const key of ["a", "b"])
        await store.append(await createSession(store, key), [say("one"), say("two"), say("three")]);
    }
    flip(path, from, text);
    return path;
  }

  it.each(flips)("is an error of every read and write: %s", async (_what, from, text, message) => {
    const path = await damaged(from, text);
    const before = readFileSync(path);
    const corrupt = { code: "STORE_CORRUPT", message: expect.stringContaining(message), remedy: expect.any(String) };
    await using store = createSqliteStore({ path, recover: false });
    await expect(store.list()).rejects.toMatchObject(corrupt);
    await expect(store.list({ state: "any", sort: "key" })).rejects.toMatchObject(corrupt);
    await expect(store.load(refOf("a"))).rejects.toMatchObject(corrupt);
    await expect(store.append(refOf("a"), [say("never")])).rejects.toMatchObject(corrupt);
    await expect(store.maintenance?.backup(`${path}.copy`)).rejects.toMatchObject(corrupt);
    await expect(findingsOf(store.maintenance?.verify())).rejects.toMatchObject(corrupt);
    expect(readFileSync(path)).toEqual(before);
  });

  it("is an error where a table has the page of another one", async () => {
    const path = await damaged("VIEW sessions", "s.key");
    flip(path, "VIEW sessions", "r.key");
    const database = new Database(path, { readonly: true });
    const root = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").pluck();
    const [words, sizes] = [Number(root.get("store_search_idx")), Number(root.get("store_search_config"))];
    database.close();
    const bytes = readFileSync(path);
    const at = bytes.indexOf("store_search_idxstore_search_idx") + 32;
    expect(bytes.readUInt8(at)).toBe(words);
    bytes.writeUInt8(sizes, at);
    writeFileSync(path, bytes);
    await using store = createSqliteStore({ path, recover: false });
    const search = Array.fromAsync(store.search?.search({ text: "one" }) ?? []);
    await expect(search).rejects.toMatchObject({ code: "STORE_CORRUPT", message: expect.stringContaining("page") });
  });

  it("is an error also where the header states another format of the schema", async () => {
    const path = await damaged(current, "0");
    const bytes = readFileSync(path);
    bytes.writeUInt8(12, 47);
    writeFileSync(path, bytes);
    await using store = createSqliteStore({ path, recover: false });
    await expect(store.list()).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(readFileSync(path)).toEqual(bytes);
  });

  it("is repaired from the pages, without the schema", async () => {
    const path = await damaged(current, "0");
    await using store = createSqliteStore({ path, recover: false });
    const found = await findingsOf(store.maintenance?.repair());
    expect(found).toEqual([
      expect.stringContaining("store_sessions_current"),
      expect.stringContaining("The list of the files could not be read"),
      expect.stringContaining("6 of 6 records recovered into"),
    ]);
    const copy = readdirSync(join(path, "..")).find((name) => name.includes(".repaired-")) ?? "";
    await using repaired = createSqliteStore({ path: join(path, "..", copy), create: false });
    expect((await repaired.list()).sessions).toMatchObject([{ messageCount: 3 }, { messageCount: 3 }]);
    expect(await findingsOf(repaired.maintenance?.verify({ full: true }))).toEqual([]);
  });

  it("is reported by an open store too, and keeps a backup from being restored", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    await createSession(store, "a");
    await store.maintenance?.backup(`${path}.backup`);
    flip(`${path}.backup`, current, "0");
    const restore = { path, backupPath: `${path}.backup`, keptAs: "kept" };
    expect(() => restoreSqliteBackup(restore)).toThrow(/store_sessions_current/);
    const database = new Database(path);
    database.unsafeMode();
    database.pragma("writable_schema = ON");
    database.exec("UPDATE sqlite_schema SET sql = replace(sql, 'archived = 0', 'archived = 1') WHERE type = 'index'");
    database.close();
    expect(await findingsOf(store.maintenance?.verify())).toEqual([expect.stringContaining("store_sessions_current")]);
  });

  it("does not count what a caller or SQLite adds", async () => {
    const path = join(testFolder(), "store.db");
    {
      await using store = createSqliteStore({ path });
      await store.append(await createSession(store, "a"), [say("kept")]);
    }
    const database = new Database(path);
    database.exec(`CREATE TABLE mine (a INTEGER PRIMARY KEY, b UNIQUE); CREATE INDEX by_type ON store_records (type);
      CREATE VIEW mine_view AS SELECT * FROM records; ANALYZE`);
    database.close();
    await using store = createSqliteStore({ path });
    expect(await textsOf(store, refOf("a"))).toEqual(["kept"]);
    expect(await findingsOf(store.maintenance?.verify({ full: true }))).toEqual([]);
  });
});
