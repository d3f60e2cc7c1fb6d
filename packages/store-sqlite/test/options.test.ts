import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createSqliteStore, type SqliteStoreOptions } from "@throughline/store-sqlite";
import { afterEach, describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const startedIn = process.cwd();
afterEach(() => process.chdir(startedIn));

describe("the options of a store", () => {
  it.each([
    ["lockTimeoutMs", Number.NaN],
    ["lockTimeoutMs", -1],
    ["lockTimeoutMs", "10s"],
    ["path", undefined],
    ["path", ""],
    ["path", "half of a pair: \ud800"],
  ])("that are out of their range are refused before anything is made: %s %s", (name, value) => {
    const options = { path: join(testFolder(), "store.db"), [name]: value } as SqliteStoreOptions;
    const refusal = expect.objectContaining({ code: "CONFIG_INVALID" }) as unknown;
    expect(() => createSqliteStore(options)).toThrow(refusal as Error);
  });

  it.each([":memory:", "file::memory:?cache=shared", "file:store.db"])(
    "name a file, not what SQLite calls a database in memory: %s",
    (path) => {
      process.chdir(testFolder());
      const refusal = expect.objectContaining({
        code: "CONFIG_INVALID",
        remedy: expect.stringContaining("createMemoryStore()") as unknown,
      }) as unknown;
      expect(() => createSqliteStore({ path })).toThrow(refusal as Error);
      expect(readdirSync(".")).toEqual([]);
    },
  );

  it("name one file, wherever the process goes", async () => {
    const folder = testFolder();
    mkdirSync(join(folder, "elsewhere"));
    process.chdir(folder);
    await using store = createSqliteStore({ path: "store.db" });
    process.chdir("elsewhere");
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one")]);
    await store.maintenance?.backup(join(folder, "copy.db"));
    await using copy = createSqliteStore({ path: join(folder, "copy.db"), create: false });
    expect(await textsOf(copy, refOf("a"))).toEqual(["one"]);
    expect([existsSync(join(folder, "store.db")), existsSync("store.db")]).toEqual([true, false]);
  });
});
