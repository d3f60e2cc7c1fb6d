import { join } from "node:path";
import Database from "better-sqlite3";
import type { Finding, SearchQuery, SessionStore } from "@throughline/core";
import { readSearchQuery, systemClock } from "@throughline/core/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { SqliteDriver, Connection } from "../src/connection.ts";
import { describe, expect, it } from "vitest";
import { SessionFilter } from "../src/session-filter.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

async function found(store: SessionStore, text: string, query: Partial<SearchQuery> = {}): Promise<string[]> {
  const hits: string[] = [];
  for await (const { sessionId, seq } of store.search?.search({ text, ...query }) ?? [])
    hits.push(`${sessionId}/${seq}`);
  return hits.toSorted();
}

/** A driver that counts the rows statements gave in each turn of the event loop. */
function countingDriver(): { readonly driver: SqliteDriver; most(): number; total(): number } {
  let [inTurn, most, total] = [0, 0, 0];
  const count = (rows: number): void => {
    if (inTurn === 0) setImmediate(() => (inTurn = 0));
    inTurn += rows;
    total += rows;
    most = Math.max(most, inTurn);
  };
  const watched = <Statement extends object>(statement: Statement): Statement =>
    new Proxy(statement, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...values: unknown[]): unknown => {
          const result: unknown = Reflect.apply(value, target, values);
          if (name === "all") count((result as readonly unknown[]).length);
          if (name === "get" && result !== undefined) count(1);
          return result === target ? watched(target) : result;
        };
      },
    });
  const driver: SqliteDriver = (path, options) => {
    const database = new Database(path, options);
    const prepare = database.prepare.bind(database) as (sql: string) => object;
    database.prepare = ((sql: string) => watched(prepare(sql))) as typeof database.prepare;
    return database;
  };
  return { driver, most: () => most, total: () => total };
}

describe("a search of a large store", () => {
  const records = 40_000;
  /** What one step may give: a page of matches, and those of them that pass the filters. */
  const mostRows = 20_000;

  it(
    "takes a bounded number of rows between two turns of the event loop, whatever its filters let through",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const path = join(testFolder(), "store.db");
      {
        await using writer = createSqliteStore({ path, defaultDurability: "process" });
        const ref = await createSession(writer, "a");
        for (let from = 0; from < records; from += 1000)
          await writer.append(
            ref,
            Array.from({ length: 1000 }, (_, index) => say(`common word n${from + index}`)),
          );
        expect(await found(writer, "n1")).toEqual(["session-a/2"]);
      }
      const asked: (readonly [text: string, query: Partial<SearchQuery>, hits: number])[] = [
        ["common", { role: "nobody" }, 0],
        ["common", { agentId: "nobody" }, 0],
        ["common", { sinceMs: Date.UTC(2900, 0) }, 0],
        ["common", { sessionId: "nobody" }, 0],
        ["common word", { role: "nobody" }, 0],
        ['"common word"', { role: "nobody" }, 0],
        ["common", { limit: 1000 }, 1000],
        ["n39*", { limit: 1000 }, 1000],
        ["common n7", {}, 1],
      ];
      const words = [
        [["common", "words"], { role: "nobody" }, 0],
        [["common", "words"], { sessionId: "nobody" }, 0],
        [["common", "words", "n7", "n8", "n9"], { limit: 1000 }, 1000],
      ] as const;
      for (const [text, query, hits] of asked) {
        const { driver, most, total } = countingDriver();
        await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
        expect(await found(store, text, query), text).toHaveLength(hits);
        expect(most(), `${text} ${JSON.stringify(query)}`).toBeLessThan(mostRows);
        // The control: so many were gone through, and would have been at once.
        if (hits === 0) expect(total()).toBeGreaterThanOrEqual(records);
      }
      for (const [anyOf, query, hits] of words) {
        const { driver, most, total } = countingDriver();
        await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
        const seqs = await Array.fromAsync(store.search?.search({ anyOf, ...query }) ?? [], ({ seq }) => seq);
        expect(seqs).toHaveLength(hits);
        expect(most(), JSON.stringify([anyOf, query])).toBeLessThan(mostRows);
        if (hits === 0) expect(total()).toBeGreaterThanOrEqual(records);
        else expect(seqs.slice(0, 3).toSorted()).toEqual([10, 8, 9]);
      }
    },
  );
});

describe("a search among many forks", () => {
  it("goes from a session to its own forks only, however many others there are", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand", defaultDurability: "process" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("shared word")]);
    await store.fork?.fork(ref, { ...ref, key: "agent:main:b" }, { sessionId: "b" });
    await store.move(ref, { kind: "archive" });
    const database = new Database(path, { readonly: true });
    const asked: string[] = [];
    const connection = {
      database: {
        prepare: (sql: string) => {
          asked.push(sql);
          return database.prepare(sql);
        },
      },
    } as unknown as Connection;
    const query = { text: "word", state: "active" } as const;
    const filter = new SessionFilter(query, readSearchQuery(query));
    expect(filter.shows(connection, 1, 1, false)).toBe(true);
    expect(filter.shows(connection, 1, 2, false)).toBe(false);
    expect(filter.shownBy(connection, 1, 1)?.session_id).toBe("b");
    expect(asked).toHaveLength(3);
    for (const sql of asked) {
      const values = Array.from(sql.matchAll(/\?/g), () => 1);
      const plan = database.prepare<unknown[], { readonly detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
      expect(plan.filter(({ detail }) => /^SCAN (s|f)\b/.test(detail)).map(({ detail }) => detail)).toEqual([]);
    }
    database.close();
  });
});

describe("a search where nothing can be written", () => {
  const findingsOf = (): { readonly findings: Finding[]; onEvent(event: { readonly name: string }): void } => {
    const findings: Finding[] = [];
    const onEvent = (event: { readonly name: string; readonly finding?: Finding }): void => {
      if (event.name === "finding" && event.finding !== undefined) findings.push(event.finding);
    };
    return { findings, onEvent };
  };

  /** A store of which the beginning is indexed and the rest is not. */
  async function halfIndexed(path: string): Promise<void> {
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("early word", { id: "early" }), say("early secret", { id: "secret" })]);
    expect(await found(store, "word")).toEqual(["session-a/1"]);
    const call = { type: "toolCall", id: "c1", name: "web_search", arguments: { query: "late word" } };
    await store.append(ref, [
      say("late word"),
      { type: "message", message: { role: "assistant", content: [call] } },
      say("late words"),
    ]);
    expect(await store.search?.lag()).toBe(3);
  }

  async function expectAnswers(store: SessionStore): Promise<void> {
    expect(await found(store, "word")).toEqual(["session-a/1", "session-a/3", "session-a/4"]);
    expect(await found(store, "word", { limit: 2 })).toHaveLength(2);
    expect(await found(store, "word*")).toEqual(["session-a/1", "session-a/3", "session-a/4", "session-a/5"]);
    expect(await found(store, '"late word"')).toEqual(["session-a/3", "session-a/4"]);
    expect(await found(store, "word", { role: "assistant" })).toEqual(["session-a/4"]);
    expect(await found(store, "word", { tool: "web_search" })).toEqual(["session-a/4"]);
    expect(await found(store, "word", { key: "agent:main:nowhere" })).toEqual([]);
  }

  it(
    "answers beside a writer that is stuck, by the index and by reading the rest, and says so",
    { tags: ["slow"], timeout: 40_000 },
    async () => {
      const path = join(testFolder(), "store.db");
      await halfIndexed(path);
      const stuck = new Database(path);
      stuck.exec("BEGIN IMMEDIATE");
      const { findings, onEvent } = findingsOf();
      await using store = createSqliteStore({ path, searchFill: "on-demand", onEvent });
      const startedMs = systemClock.nowMs();
      await expectAnswers(store);
      // Far less than the 10 s an operation waits for a lock, although seven were asked.
      expect(systemClock.nowMs() - startedMs).toBeLessThan(8000);
      expect(findings[0]).toMatchObject({ code: "SEARCH_INDEX_BEHIND", severity: "warning" });
      expect(findings[0]?.message).toMatch(/^3 records are not in the search index/);
      stuck.close();
      expect(await found(store, "late")).toHaveLength(3);
      for (let waits = 0; (await store.search?.lag()) !== 0 && waits < 200; waits++) {
        await systemClock.sleep(100);
        await found(store, "late");
      }
      expect(await store.search?.lag()).toBe(0);
    },
  );

  it.each(["SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR_WRITE"])("answers where writing gives %s", async (code) => {
    const path = join(testFolder(), "store.db");
    await halfIndexed(path);
    const driver: SqliteDriver = (at, options) => {
      const database = new Database(at, options);
      const prepare = database.prepare.bind(database) as (sql: string) => { run(): unknown };
      database.prepare = ((sql: string) => {
        const statement = prepare(sql);
        // Every write is refused before it changes anything.
        if (sql === "BEGIN IMMEDIATE")
          statement.run = () => {
            throw new Database.SqliteError("a fault of the test", code);
          };
        return statement;
      }) as typeof database.prepare;
      return database;
    };
    const { findings, onEvent } = findingsOf();
    await using store = createSqliteStore({ path, driver, searchFill: "on-demand", onEvent });
    await expectAnswers(store);
    expect(findings[0]?.code).toBe("SEARCH_INDEX_BEHIND");
  });

  it("says nothing where only children are not entered, which no search asks for", { tags: ["slow"] }, async () => {
    const path = join(testFolder(), "store.db");
    await halfIndexed(path);
    {
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      expect(await found(store, "late")).toHaveLength(3);
    }
    const stuck = new Database(path);
    stuck.exec("UPDATE store_children_state SET entered_to = 0; BEGIN IMMEDIATE");
    const { findings, onEvent } = findingsOf();
    await using store = createSqliteStore({ path, searchFill: "on-demand", onEvent });
    await expectAnswers(store);
    expect(findings).toEqual([]);
    stuck.close();
  });

  it("does not find what was redacted, and reads nothing twice", { tags: ["slow"] }, async () => {
    const path = join(testFolder(), "store.db");
    await halfIndexed(path);
    {
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      await store.redact({ namespace: "", agentId: "main", key: "agent:main:a" }, ["secret"], { reason: "test" });
    }
    const stuck = new Database(path);
    stuck.exec("BEGIN IMMEDIATE");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    expect(await found(store, "secret")).toEqual([]);
    expect(await found(store, "early")).toEqual(["session-a/1"]);
    stuck.close();
  });

  it("stops when it is asked to, and not for want of patience", async () => {
    const path = join(testFolder(), "store.db");
    await halfIndexed(path);
    const stuck = new Database(path);
    stuck.exec("BEGIN IMMEDIATE");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const aborted = new AbortController();
    const search = found(store, "word", { signal: aborted.signal });
    setTimeout(() => aborted.abort(), 50);
    await expect(search).rejects.toMatchObject({ code: "ABORTED" });
    stuck.close();
  });
});
