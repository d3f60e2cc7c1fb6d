import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { schemaObjects, schemaVersion } from "../src/schema.ts";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

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
