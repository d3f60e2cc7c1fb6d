import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, quickFolder, testFolder, textsOf } from "./test-folder.ts";

const secret = "purgedsecret";
const records = 3000;
const shared = 40;
/** What a record above the shared ones lies beside. */
const large = `${secret} ${"x".repeat(300_000)}`;

/** Session a with many records, session b, and a fork of the beginning of a; what only a says is the secret. */
async function fill(store: SessionStore, size: number = records): Promise<void> {
  const [a, b] = [await createSession(store, "a"), await createSession(store, "b")];
  const told = Array.from({ length: size }, (_, index) => say(index < shared ? `kept ${index}` : `${secret} ${index}`));
  for (let from = 0; from < size; from += 500)
    await store.append(a, told.slice(from, from + 500), { idempotencyKey: `k${from}` });
  await store.append(a, [say(large), say("with an id", { id: "given" })]);
  await store.append(b, [say("other"), say(large.replace(secret, "other"))]);
  await store.fork?.fork(a, refOf("fork"), { sessionId: "session-fork", atSeq: shared });
  await hitsOf(store, secret);
}

async function hitsOf(store: SessionStore, text: string): Promise<readonly string[]> {
  const hits = await Array.fromAsync(store.search?.search({ text, limit: 1000 }) ?? []);
  return [...new Set(hits.map(({ sessionId }) => sessionId))];
}

interface Numbers {
  readonly records: number;
  readonly purged: number;
  /** Tables of an index that was put aside. */
  readonly aside: number;
}

function numbersIn(path: string): Numbers {
  const database = new Database(path, { readonly: true });
  const count = (sql: string): number => database.prepare<[], number>(sql).pluck().get() ?? 0;
  const numbers = {
    records: count("SELECT count(*) FROM store_records"),
    purged: count("SELECT count(*) FROM store_sessions WHERE namespace = '(purged)'"),
    aside: count("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'store_search_old%' AND type = 'table'"),
  };
  database.close();
  return numbers;
}

function saysAnywhere(path: string, text: string): boolean {
  const folder = dirname(path);
  return readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(text));
}

/** That a is gone for whoever looks, and that the others are whole. */
async function assertGone(store: SessionStore): Promise<void> {
  expect(await store.load(refOf("a"))).toBeNull();
  await expect(textsOf(store, refOf("a"))).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  for (const namespace of ["", "(purged)"])
    for (const state of ["active", "any"] as const)
      expect((await store.list({ namespace, state, sort: "key" })).sessions.map(({ ref }) => ref.key)).toEqual(
        namespace === "" ? [refOf("b").key, refOf("fork").key] : [],
      );
  expect(await hitsOf(store, secret)).toEqual([]);
  expect(await hitsOf(store, "kept")).toEqual(["session-fork"]);
  expect(await Array.fromAsync(store.search?.search({ text: secret, namespace: "(purged)" }) ?? [])).toEqual([]);
  expect(await textsOf(store, refOf("fork"))).toEqual(Array.from({ length: shared }, (_, index) => `kept ${index}`));
  expect((await textsOf(store, refOf("b")))[0]).toBe("other");
  for (const full of [false, true])
    expect(await Array.fromAsync(store.maintenance?.verify({ full }) ?? [])).toEqual([]);
}

describe("purging a long session", () => {
  it("holds nobody up: others write and read in between, and find the session gone at once", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    await fill(store);
    const seen: number[] = [];
    let isOver = false;
    const removing = store.remove(refOf("a"), { purge: true }).then(() => (isOver = true));
    while (!isOver) {
      await store.append(refOf("b"), [say("meanwhile")]);
      expect(await store.load(refOf("a"))).toBeNull();
      seen.push(numbersIn(path).records);
    }
    await removing;
    // 300 records a commit; one or two commits between two looks.
    expect(seen.length).toBeGreaterThan(5);
    const steps = seen.map((count, index) => (seen[index - 1] ?? count) - count);
    expect(Math.max(...steps)).toBeLessThanOrEqual(900);
    expect(numbersIn(path).purged).toBe(0);
    expect(saysAnywhere(path, secret)).toBe(false);
    await assertGone(store);
    const again = await createSession(store, "a");
    expect(await textsOf(store, again)).toEqual([]);
  });

  it.each(testSize({ short: [0, 4], long: [0, 1, 4, 9] }))(
    "is finished by whoever writes next when it is killed, %i turns after its begin",
    async (turns) => {
      const path = join(testFolder(quickFolder()), "store.db");
      await using before = createSqliteStore({ path, searchFill: "on-demand" });
      await fill(before);
      await before.close();
      const script = fileURLToPath(new URL("purge-until-killed.ts", import.meta.url));
      const { signal } = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, String(turns)]);
      expect(signal).toBe("SIGKILL");
      expect(numbersIn(path)).toMatchObject({ purged: 1 });
      {
        await using reader = createSqliteStore({ path, searchFill: "on-demand" });
        await assertGone(reader);
      }
      expect(numbersIn(path).purged).toBe(1);
      await using writer = createSqliteStore({ path, searchFill: "on-demand" });
      await writer.append(refOf("b"), [say("goes on")]);
      await expect.poll(() => numbersIn(path).purged).toBe(0);
      await assertGone(writer);
      await writer.close();
      expect(saysAnywhere(path, secret)).toBe(false);
      const database = new Database(path, { readonly: true });
      expect(database.pragma("foreign_key_check")).toEqual([]);
      expect(database.prepare("SELECT count(*) AS payloads FROM store_payloads").get()).toEqual({ payloads: 1 });
      for (const table of ["store_record_ids", "store_keyed_appends", "store_children"])
        expect(database.prepare(`SELECT 1 FROM ${table} WHERE session = 1`).all()).toEqual([]);
      database.close();
    },
  );

  it("is finished by whoever writes next when only the index is left that it was taken out of", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    await using before = createSqliteStore({ path, searchFill: "on-demand" });
    await fill(before);
    await before.close();
    const script = fileURLToPath(new URL("purge-until-killed.ts", import.meta.url));
    const { signal } = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, "index"]);
    expect(signal).toBe("SIGKILL");
    expect(numbersIn(path)).toMatchObject({ purged: 0, aside: 2 });
    expect(saysAnywhere(path, secret)).toBe(true);
    await using writer = createSqliteStore({ path, searchFill: "on-demand" });
    await writer.append(refOf("b"), [say("goes on")]);
    await expect.poll(() => numbersIn(path).aside).toBe(0);
    await assertGone(writer);
    await writer.close();
    expect(saysAnywhere(path, secret)).toBe(false);
  });

  it("is finished by whoever writes next, also when that one closes at once", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    await using before = createSqliteStore({ path, searchFill: "on-demand" });
    await fill(before);
    await before.close();
    const script = fileURLToPath(new URL("purge-until-killed.ts", import.meta.url));
    spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, "1"]);
    expect(numbersIn(path).purged).toBe(1);
    const writer = createSqliteStore({ path, searchFill: "on-demand" });
    await writer.append(refOf("b"), [say("goes on")]);
    await writer.close();
    expect(numbersIn(path)).toMatchObject({ purged: 0, aside: 0 });
    expect(saysAnywhere(path, secret)).toBe(false);
  });

  it("is finished by the next purge, also when that finds no session", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    const faults = createFaultyDriver();
    await using store = createSqliteStore({ path, searchFill: "on-demand", driver: faults.driver });
    await fill(store, 1500);
    let commits = 0;
    await using watcher = createSqliteStore({
      path,
      searchFill: "on-demand",
      driver: faults.driver,
      onEvent: ({ name }) => {
        if (name !== "session-removed") return;
        commits += 1;
        faults.failNextCommit("SQLITE_FULL");
      },
    });
    await expect(watcher.remove(refOf("a"), { purge: true })).rejects.toMatchObject({
      code: "STORE_FULL",
      outcome: "unknown",
    });
    expect(commits).toBe(1);
    await assertGone(watcher);
    expect(numbersIn(path).purged).toBe(1);
    await expect(watcher.remove(refOf("a"), { purge: true })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    expect(numbersIn(path).purged).toBe(0);
    expect(saysAnywhere(path, secret)).toBe(false);
  });

  it("keeps the process alive, also right after turns", () => {
    const path = join(testFolder(quickFolder()), "store.db");
    const script = fileURLToPath(new URL("purge-after-turns.ts", import.meta.url));
    const { status, stdout } = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path]);
    expect([status, String(stdout)]).toEqual([0, "purged"]);
  });

  it("is waited for by close", async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    const store = createSqliteStore({ path, searchFill: "on-demand" });
    await fill(store);
    const removing = store.remove(refOf("a"), { purge: true });
    await new Promise((resolve) => setTimeout(resolve, 5));
    await store.close();
    await removing;
    expect(saysAnywhere(path, secret)).toBe(false);
  });
});
