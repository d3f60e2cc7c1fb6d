import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { SearchQuery, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/node";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder } from "./test-folder.ts";

async function found(store: SessionStore, text: string, query: Partial<SearchQuery> = {}): Promise<string[]> {
  const hits: string[] = [];
  for await (const { sessionId, seq } of store.search?.search({ text, ...query }) ?? [])
    hits.push(`${sessionId}/${seq}`);
  return hits.toSorted();
}

describe("the full-text index", () => {
  it("is no part of a turn, and is filled when it is quiet", async () => {
    const path = join(testFolder(), "store.db");
    const { driver, statements } = createFaultyDriver();
    await using store = createSqliteStore({ path, driver });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one word")]);
    expect(statements().filter((sql) => sql.includes("store_search"))).toEqual([]);
    expect(await store.search?.lag()).toBe(1);
    for (let waits = 0; (await store.search?.lag()) !== 0 && waits < 200; waits++) await systemClock.sleep(20);
    expect(await store.search?.lag()).toBe(0);
    expect(await found(store, "word")).toEqual(["session-a/1"]);
  });

  it("is filled by whoever searches first, and once, by several processes' handles", async () => {
    const path = join(testFolder(), "store.db");
    await using one = createSqliteStore({ path, searchFill: "on-demand" });
    await using two = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(one, "a");
    await one.append(
      ref,
      Array.from({ length: 600 }, (_, index) => say(`word n${index}`)),
    );
    const [first, second] = await Promise.all([
      found(one, "word", { limit: 1000 }),
      found(two, "word", { limit: 1000 }),
    ]);
    expect([first.length, second.length]).toEqual([600, 600]);
    expect(await found(two, "n599")).toEqual(["session-a/600"]);
  });

  it("can be made anew, and is when the rules of its words change", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one word")]);
    expect(await found(store, "word")).toHaveLength(1);
    const database = new Database(path);
    database.exec("INSERT INTO store_search (store_search) VALUES ('delete-all')");
    expect(await found(store, "word")).toEqual([]);
    await store.search?.rebuild?.();
    expect(await found(store, "word")).toHaveLength(1);
    database.exec(
      "INSERT INTO store_search (store_search) VALUES ('delete-all'); UPDATE store_search_state SET rules = 0",
    );
    database.close();
    expect(await found(store, "word")).toHaveLength(1);
  });

  it("gives up what is redacted or purged, also when the words are many and the numbers are used again", async () => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    const secrets = Array.from({ length: 40 }, (_, index) => `zsecret${index}q`);
    await store.append(
      ref,
      Array.from({ length: 800 }, (_, index) => say(`aword${index} zzword${index}`)),
    );
    await store.append(
      ref,
      secrets.map((secret, index) => say(`has ${secret} inside`, { id: `s${index}` })),
    );
    expect(await found(store, "zsecret7q")).toHaveLength(1);
    const kept = (): string[] => {
      const bytes = readdirSync(folder).map((name) => readFileSync(join(folder, name)).toString("latin1"));
      // The index keeps only what a word has not in common with the one before it.
      return bytes.flatMap((text) => text.match(/zsecret\d+q|secret\d+q|ecret\d/g) ?? []);
    };
    const database = new Database(path);
    database.pragma("wal_checkpoint(TRUNCATE)");
    expect(kept().length).toBeGreaterThan(0);
    await store.redact(
      ref,
      secrets.map((_, index) => `s${index}`),
      { reason: "test" },
    );
    expect(kept()).toEqual([]);
    expect(database.pragma("integrity_check", { simple: true })).toBe("ok");
    database.exec("INSERT INTO store_search (store_search) VALUES ('integrity-check')");
    await store.remove(ref, { purge: true });
    const next = await createSession(store, "b");
    await store.append(next, [say("fresh words")]);
    expect(await found(store, "fresh")).toEqual(["session-b/1"]);
    expect(await found(store, "aword1")).toEqual([]);
    database.exec("INSERT INTO store_search (store_search) VALUES ('integrity-check')");
    database.close();
  });

  it("finds what a fork shares under the key that is asked for, and once otherwise", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "store.db") });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("shared word"), say("later word")]);
    await store.fork?.fork(ref, refOf("b"), { sessionId: "b", atSeq: 1 });
    await store.append(refOf("b"), [say("own word")]);
    expect(await found(store, "word")).toEqual(["b/2", "session-a/1", "session-a/2"]);
    expect(await found(store, "word", { key: refOf("b").key })).toEqual(["b/1", "b/2"]);
    await store.remove(ref, { purge: true });
    expect(await found(store, "word")).toEqual(["b/1", "b/2"]);
  });

  it("is not there under a codec", async () => {
    const { createXorCodec } = await import("@throughline/store-conformance");
    await using store = createSqliteStore({ path: join(testFolder(), "store.db"), codec: createXorCodec() });
    expect([store.capabilities.search, store.search]).toEqual([false, undefined]);
  });
});
