import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { PayloadCodec, SearchQuery, SessionStore } from "@throughline/core";
import { refused, systemClock } from "@throughline/core/internal";
import { createSqliteStore, restoreSqliteBackup } from "@throughline/store-sqlite";
import { createXorCodec } from "@throughline/store-conformance";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

async function found(store: SessionStore, text: string, query: Partial<SearchQuery> = {}): Promise<string[]> {
  const hits: string[] = [];
  for await (const { sessionId, seq } of store.search?.search({ text, ...query }) ?? [])
    hits.push(`${sessionId}/${seq}`);
  return hits.toSorted();
}

/** Counts the different words of the index. */
function wordsIn(path: string): number {
  const database = new Database(path);
  database.exec("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, store_search, row)");
  const count = database.prepare<[], number>("SELECT count(*) FROM temp.words").pluck().get() ?? 0;
  database.close();
  return count;
}

describe("the full-text index", () => {
  it("is no part of a turn, and is filled when it is quiet", { tags: ["slow"] }, async () => {
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

  it("is filled by whoever searches first, and once, by several processes' handles", { tags: ["slow"] }, async () => {
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

  it("finds what a fork shares for whom the fork is, whatever became of the session that wrote it", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "store.db"), searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("shared word"), say("later word")]);
    const [theirs, third] = [refOf("b"), refOf("c")];
    await store.fork?.fork(ref, theirs, { sessionId: "b", atSeq: 1 });
    await store.fork?.fork(theirs, third, { sessionId: "c" });
    expect(await found(store, "word", { key: theirs.key })).toEqual(["b/1"]);
    expect(await found(store, "word*", { key: theirs.key })).toEqual(["b/1"]);
    expect(await found(store, "word", { key: ref.key })).toEqual(["session-a/1", "session-a/2"]);
    await store.move(ref, { kind: "archive" });
    expect(await found(store, "word", { state: "active" })).toEqual(["b/1"]);
    expect(await found(store, "word", { state: "active", key: third.key })).toEqual(["c/1"]);
    expect(await found(store, "word", { state: "archived" })).toEqual(["session-a/1", "session-a/2"]);
    // Also where the index ranks all matches, and where only the newest are looked at.
    await store.append(
      third,
      Array.from({ length: 300 }, () => say("word of its own, again and again")),
    );
    expect(await found(store, "word", { key: theirs.key })).toEqual(["b/1"]);
    expect((await found(store, "word", { state: "active", key: third.key, limit: 1000 })).length).toBe(301);
  });

  it("ranks by what the records say, whether SQLite counts the words or only the newest matches are looked at", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "store.db"), searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    const best = async (text: string, query: Partial<SearchQuery> = {}): Promise<number[]> => {
      const seqs: number[] = [];
      for await (const { seq, score } of store.search?.search({ text, ...query }) ?? []) {
        expect(Number.isFinite(score)).toBe(true);
        seqs.push(seq);
      }
      return seqs;
    };
    const filler = "some other words that say nothing about it at all";
    await store.append(ref, [
      say(`green tea ${filler}`),
      say("green tea, green tea, green tea"),
      say(`tea green ${filler}`),
    ]);
    // Few matches, of one word, of two and of a phrase.
    expect((await best("green"))[0]).toBe(2);
    expect((await best("green tea"))[0]).toBe(2);
    expect(await best('"green tea"')).toEqual([2, 1]);
    expect((await best("gre*"))[0]).toBe(2);
    await store.append(
      ref,
      Array.from({ length: 500 }, (_, index) => say(`green tea n${index} ${filler}`)),
    );
    // A word: every match counts. A phrase: of many matches the newest do.
    expect((await best("green"))[0]).toBe(2);
    const phrase = await best('"green tea"');
    expect(phrase).toHaveLength(20);
    expect(Math.min(...phrase)).toBeGreaterThan(300);
    expect(await best('"green tea"', { limit: 1000 })).toHaveLength(502);
    expect(await best("green", { role: "nobody" })).toEqual([]);
    expect(await best("green", { key: "agent:main:nowhere" })).toEqual([]);
    expect(await best("green n499", { key: ref.key })).toEqual([503]);
  });

  it(
    "looks a beginning that very many words have in common up in the newest texts, and never in the index",
    { tags: ["slow"] },
    async () => {
      const { driver, statements } = createFaultyDriver();
      await using store = createSqliteStore({
        path: join(testFolder(), "store.db"),
        driver,
        searchFill: "on-demand",
        limits: { batchRecords: 1000 },
      });
      const ref = await createSession(store, "a");
      const many = Array.from({ length: 110 }, (_, index) => `w1${index}`).join(" ");
      await store.append(ref, [say("rare w1first"), say("rare alone"), say("other")]);
      await store.append(
        ref,
        Array.from({ length: 460 }, (_, index) => say(`${many} n${index}`)),
      );
      const other = await createSession(store, "b");
      await store.append(other, [say("rare w1last"), say("nothing here")]);
      const matches = (): string[] => statements().filter((sql) => sql.includes("MATCH"));
      // 50,600 places: the newest are enough.
      const all = await found(store, "w1*", { limit: 1000 });
      expect([all.length, all.includes("session-b/1"), all.includes("session-b/2")]).toEqual([462, true, false]);
      expect(await found(store, "w1*", { limit: 20 })).toHaveLength(20);
      expect(await found(store, "w1*", { key: other.key })).toEqual(["session-b/1"]);
      expect(await found(store, "w1*", { role: "nobody" })).toEqual([]);
      expect(matches()).toEqual([]);
      // With other words these are looked up, and what they find is looked through.
      expect(await found(store, "rare w1*")).toEqual(["session-a/1", "session-b/1"]);
      expect(await found(store, "rare/w1*")).toEqual(["session-a/1", "session-b/1"]);
      expect(await found(store, "n459 w1*")).toEqual(["session-a/463"]);
      expect(matches().length).toBeGreaterThan(0);
      // A beginning that is not so common is looked up as ever.
      expect(await found(store, "w1f*")).toEqual(["session-a/1"]);
      const aborted = new AbortController();
      const search = found(store, "w1*", { signal: aborted.signal, limit: 1000 });
      aborted.abort();
      await expect(search).rejects.toMatchObject({ code: "ABORTED" });
    },
  );

  it("answers within its bounds whatever is asked", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "store.db"), searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [
      say("plain words"),
      say("中文分词 ☕️ packages/core/src/parseSessionKey.ts snake_case_name"),
    ]);
    const asked = [
      '"',
      '"plain words',
      '""',
      "NEAR(plain words, 2)",
      "plain AND OR NOT",
      "plain*words*",
      "* ^plain",
      "words:plain",
      "{words names}:plain",
      "-plain +words",
      "'; DROP TABLE store_records; --",
      "pl\0ain",
      "\u0000",
      "☕️",
      "\ud800",
      ")(",
      "a".repeat(1000),
    ];
    for (const text of asked) expect(Array.isArray(await found(store, text)), JSON.stringify(text)).toBe(true);
    await expect(found(store, "a".repeat(10_240))).rejects.toMatchObject({ code: "INPUT_INVALID" });
    for (const text of [
      "中",
      "中文",
      "分词",
      "parse session",
      "parseSessionKey",
      "SessionKey",
      "core/src",
      "snake_case_name",
      "case",
    ])
      expect(await found(store, text), text).toEqual(["session-a/2"]);
    expect(await found(store, "plain")).toEqual(["session-a/1"]);
  });

  it("answers from a backup that was put in the place of its store, with what was written since indexed anew", async () => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    const ref = refOf("a");
    {
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      await createSession(store, "a");
      await store.append(ref, [say("early word")]);
      expect(await found(store, "word")).toHaveLength(1);
      await store.maintenance?.backup(join(folder, "one.backup"));
      await store.append(ref, [say("lost word")]);
      expect(await found(store, "lost")).toHaveLength(1);
    }
    restoreSqliteBackup({ backupPath: join(folder, "one.backup"), path, keptAs: "kept" });
    await using restored = createSqliteStore({ path });
    expect([await found(restored, "lost"), await found(restored, "word")]).toEqual([[], ["session-a/1"]]);
    await restored.append(ref, [say("other word")]);
    expect(await found(restored, "word")).toEqual(["session-a/1", "session-a/2"]);
  });

  it("is not kept from its answer by a record that is damaged, indexed before it was or after", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    for (const text of ["apple one", "apple two"]) await store.append(ref, [say(text)]);
    const searched = async (): Promise<number[]> => {
      const seqs: number[] = [];
      for await (const { seq } of store.search?.search({ text: "apple" }) ?? []) seqs.push(seq);
      return seqs.toSorted();
    };
    expect(await searched()).toEqual([1, 2]);
    const beside = new Database(path);
    beside.exec("UPDATE store_records SET text = 'x' WHERE seq = 1");
    beside.close();
    expect(await searched()).toEqual([2]);
    await store.search?.rebuild?.();
    expect(await searched()).toEqual([2]);
    await expect(textsOf(store, ref)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });

  it("holds tokens under a codec, and is emptied when the codec gives none any more", async () => {
    const path = join(testFolder(), "store.db");
    const codec = createXorCodec();
    const texts = Array.from({ length: 20 }, (_, index) => `zebra ${index}`);
    {
      await using store = createSqliteStore({ path, codec });
      await store.append(
        await createSession(store, "a"),
        texts.map((text) => say(text)),
      );
      expect(await found(store, "zebra", { limit: 50 })).toHaveLength(20);
    }
    const { searchToken: _, ...silent } = codec;
    {
      await using store = createSqliteStore({ path, codec: silent });
      expect([store.capabilities.search, store.search]).toEqual([false, undefined]);
      await store.append(refOf("a"), [say("another zebra")]);
    }
    expect(wordsIn(path)).toBe(0);
    await using store = createSqliteStore({ path, codec });
    expect(await found(store, "zebra", { limit: 50 })).toHaveLength(21);
    expect(wordsIn(path)).toBeGreaterThan(20);
    await store.maintenance?.backup(`${path}.backup`);
    expect(wordsIn(`${path}.backup`)).toBe(0);
    await using backup = createSqliteStore({ path: `${path}.backup`, codec });
    expect(await found(backup, "zebra", { limit: 50 })).toHaveLength(21);
  });

  it("is put aside, and not emptied at once, by a redaction with a codec that gives no tokens any more", async () => {
    const path = join(testFolder(), "store.db");
    const codec = createXorCodec();
    {
      await using store = createSqliteStore({ path, codec });
      await store.append(await createSession(store, "a"), [say("zebra", { id: "r1" }), say("zebra", { id: "r2" })]);
      expect(await found(store, "zebra")).toHaveLength(2);
    }
    const { searchToken: _, ...silent } = codec;
    const { driver, statements } = createFaultyDriver();
    {
      await using store = createSqliteStore({ path, codec: silent, driver });
      await store.redact(refOf("a"), ["r1", "r2"], { reason: "test" });
      expect(statements().filter((sql) => sql.includes("delete-all"))).toEqual([]);
      expect(wordsIn(path)).toBe(0);
    }
    await using store = createSqliteStore({ path, codec });
    expect(await found(store, "zebra")).toEqual([]);
  });

  it("skips no record that another copy of the keyring decodes, and those of a destroyed key", async () => {
    const path = join(testFolder(), "store.db");
    const codec = createXorCodec();
    const failing = (code: "KEY_MISSING" | "KEY_DESTROYED"): PayloadCodec => ({
      ...codec,
      decode: (coded, context) => {
        if (context.sessionId === "session-b" && context.part === "record") throw refused(code, "The test says so.");
        return codec.decode(coded, context);
      },
    });
    {
      await using store = createSqliteStore({ path, codec, searchFill: "on-demand" });
      for (const name of ["a", "b", "c"]) await store.append(await createSession(store, name), [say("zebra")]);
    }
    {
      await using store = createSqliteStore({ path, codec: failing("KEY_MISSING"), searchFill: "on-demand" });
      const refusal = { code: "CODEC_FAILED", details: { reason: "KEY_MISSING" } };
      await expect(found(store, "zebra")).rejects.toMatchObject(refusal);
    }
    {
      await using store = createSqliteStore({ path, codec, searchFill: "on-demand" });
      expect(await found(store, "zebra")).toHaveLength(3);
      await store.search?.rebuild?.();
    }
    await using store = createSqliteStore({ path, codec: failing("KEY_DESTROYED"), searchFill: "on-demand" });
    expect(await found(store, "zebra")).toEqual(["session-a/1", "session-c/1"]);
  });
});
