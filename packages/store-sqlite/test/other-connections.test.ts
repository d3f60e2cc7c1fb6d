import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { until } from "@throughline/test-kit";
import type { SessionRef, SessionStore } from "@throughline/core";
import type { SqliteDriver } from "../src/connection.ts";
import { describe, expect, it } from "vitest";
import { say } from "./append-drafts.ts";
import { createSession, standingClock, testFolder, textsOf } from "./test-folder.ts";

/** Whether any file of the store holds the text. */
function isKept(path: string, text: string): boolean {
  const folder = join(path, "..");
  return readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(text));
}

/** The texts that a reader is shown: none of a session that is gone. */
async function shownTexts(store: SessionStore, ref: SessionRef): Promise<readonly unknown[]> {
  return (await store.load(ref)) === null ? [] : textsOf(store, ref);
}

describe("beside other connections", () => {
  it("a redaction that a reader keeps from the log says so, and is completed by asking again", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, lockTimeoutMs: 100 });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("the-secret", { id: "r1" })]);
    const reader = new Database(path, { readonly: true });
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM store_records").get();
    const redaction = store.redact(ref, ["r1"], { reason: "test" });
    await expect(redaction).rejects.toMatchObject({ code: "STORE_LOCKED", outcome: "unknown", retryable: true });
    // Nobody who reads through the store sees it any more, but the log holds it.
    expect([await textsOf(store, ref), isKept(path, "the-secret")]).toEqual([[undefined], true]);
    reader.close();
    expect(await store.redact(ref, ["r1"], { reason: "test" })).toEqual({ seqs: [1] });
    expect(isKept(path, "the-secret")).toBe(false);
  });

  it.each<readonly [string, readonly unknown[], (store: SessionStore, ref: SessionRef) => Promise<unknown>]>([
    ["purge", [], (store, ref) => store.remove(ref, { purge: true })],
    ["redaction", [undefined], (store, ref) => store.redact(ref, ["r1"], { reason: "test" })],
  ])("a %s is waited for by whoever closes, with what it takes out of the log", async (_what, left, take) => {
    const path = join(testFolder(), "store.db");
    const store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("the-secret", { id: "r1" })]);
    const reader = new Database(path, { readonly: true });
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM store_records").get();
    const taking = take(store, ref);
    await until(async () => isDeepStrictEqual(await shownTexts(store, ref), left));
    const closing = store.close();
    setTimeout(() => reader.close(), 50);
    await taking;
    await closing;
    expect(isKept(path, "the-secret")).toBe(false);
  });

  it("what was checkpointed before leaves nothing behind either, in pages that were freed", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    const other = await createSession(store, "b");
    await store.append(ref, [say(`the-secret ${"x".repeat(50_000)} the-secret`, { id: "r1" })]);
    await store.append(other, [say(`purged-secret ${"x".repeat(50_000)} purged-secret`)], { idempotencyKey: "k" });
    const database = new Database(path);
    database.pragma("wal_checkpoint(TRUNCATE)");
    expect([isKept(path, "the-secret"), isKept(path, "purged-secret")]).toEqual([true, true]);
    await store.redact(ref, ["r1"], { reason: "test" });
    await store.remove(other, { purge: true });
    expect([isKept(path, "the-secret"), isKept(path, "purged-secret")]).toEqual([false, false]);
    expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
    database.close();
  });

  it("an append that waits for the lock heeds its signal, and nothing of it is written", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    const holder = new Database(path);
    holder.exec("BEGIN IMMEDIATE");
    const controller = new AbortController();
    const append = store.append(ref, [say("one")], { signal: controller.signal });
    setTimeout(() => controller.abort(), 30);
    await expect(append).rejects.toMatchObject({ code: "ABORTED", outcome: "not-applied" });
    holder.close();
    await store.append(ref, [say("two")]);
    expect(await textsOf(store, ref)).toEqual(["two"]);
  });

  it("a reader that rests between two pages keeps nobody from cutting the log", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, limits: { pageRecords: 2 } });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one"), say("two"), say("three")]);
    const pages = store.read(ref)[Symbol.asyncIterator]();
    await pages.next();
    const database = new Database(path);
    expect(database.pragma("wal_checkpoint(TRUNCATE)")).toMatchObject([{ busy: 0 }]);
    database.close();
    expect((await pages.next()).value?.records).toHaveLength(1);
  });

  it("commits wait for the disk when one of their writes asks for it", async () => {
    const levels: unknown[] = [];
    const driver: SqliteDriver = (path, options) => {
      const database = new Database(path, options);
      const prepare = database.prepare.bind(database) as (sql: string) => Database.Statement<unknown[]>;
      database.prepare = ((sql: string) => {
        const statement = prepare(sql);
        if (sql !== "COMMIT") return statement;
        const run = statement.run.bind(statement);
        return Object.assign(statement, {
          run: () => {
            levels.push(database.pragma("synchronous", { simple: true }));
            return run();
          },
        });
      }) as typeof database.prepare;
      return database;
    };
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, driver, clock: standingClock, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    levels.length = 0;
    await store.append(ref, [say("one")], { durability: "process" });
    await store.append(ref, [say("two")]);
    await Promise.all([store.append(ref, [say("a")], { durability: "none" }), store.append(ref, [say("b")])]);
    await store.append(ref, [say("three")], { durability: "none" });
    expect(levels).toEqual([1, 2, 2, 1]);
  });

  it("two sessions of one key in two namespaces, written in turns and together, are never taken for each other", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "store.db") });
    const one = { namespace: "one", agentId: "main", key: "agent:main:same" };
    const other = { ...one, namespace: "other" };
    for (const ref of [one, other]) await store.save(ref, { sessionId: `of-${ref.namespace}` }, { ifRevision: null });
    const seqs: (number | undefined)[] = [];
    for (const ref of [one, one, other, one]) seqs.push((await store.append(ref, [say("in turns")])).records[0]?.seq);
    const together = await Promise.all([other, one, other].map((ref) => store.append(ref, [say("together")])));
    expect([...seqs, ...together.map(({ records }) => records[0]?.seq)]).toEqual([1, 2, 1, 3, 2, 4, 3]);
  });
});
