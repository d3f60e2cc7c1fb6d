import { join } from "node:path";
import type { AppendDraft, SearchHit, SearchQuery, SessionEvent, SessionRef, SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import Database from "better-sqlite3";
import { say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder } from "./test-folder.ts";

async function hitsOf(store: SessionStore, query: SearchQuery): Promise<SearchHit[]> {
  return Array.fromAsync(store.search?.search(query) ?? []);
}

async function ranked(store: SessionStore, anyOf: readonly string[], query: SearchQuery = {}): Promise<string[]> {
  return (await hitsOf(store, { anyOf, ...query })).map(({ sessionId, seq }) => `${sessionId}/${seq}`);
}

async function appendAll(store: SessionStore, ref: SessionRef, drafts: readonly AppendDraft[]): Promise<void> {
  for (let from = 0; from < drafts.length; from += 1000) await store.append(ref, drafts.slice(from, from + 1000));
}

describe("a search for any of some words", () => {
  it("ranks the word itself before its other forms, and a tool only filters", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "store.db"), searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    const call = { type: "toolCall", id: "c1", name: "compaction", arguments: { at: "some" } };
    await store.append(ref, [
      say("one compacted here"),
      say("one compaction here"),
      { type: "message", message: { role: "assistant", content: [call] } },
      say("nothing of it here"),
    ]);
    expect(await ranked(store, ["compaction", "here"], { role: "user" })).toEqual(
      [2, 1, 4].map((seq) => `session-a/${seq}`),
    );
    expect(await ranked(store, ["here"], { tool: "compaction" })).toEqual([]);
    expect(await ranked(store, ["some"], { tool: "compaction" })).toEqual(["session-a/3"]);
  });

  it("fills an index of earlier rules anew", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("two compactions")]);
    expect(await ranked(store, ["compacted"])).toEqual(["session-a/1"]);
    const database = new Database(path);
    database.exec("INSERT INTO store_search (store_search) VALUES ('delete-all');");
    database.exec("INSERT INTO store_search (rowid, words) VALUES (1, 'two compactions')");
    expect(await ranked(store, ["compacted"])).toEqual([]);
    database.exec("UPDATE store_search_state SET rules = 1");
    database.close();
    expect(await ranked(store, ["compacted"])).toEqual(["session-a/1"]);
  });

  it("reads the records behind an index that cannot be written, the rarer words first", async () => {
    const { driver, before } = createFaultyDriver();
    const events: SessionEvent[] = [];
    await using store = createSqliteStore({
      path: join(testFolder(), "store.db"),
      driver,
      searchFill: "on-demand",
      onEvent: (event) => events.push(event),
    });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("common compactions"), say("common thing"), say("common rare")]);
    await ranked(store, ["absent"]);
    await store.append(ref, [say("common later"), say("a compacted text"), say("unlike")]);
    before((sql) => {
      if (sql.startsWith("INSERT INTO store_search")) throw new Database.SqliteError("disk full", "SQLITE_FULL");
    });
    const found = await ranked(store, ["compaction", "common", "rare"]);
    expect(found.slice(0, 3).toSorted()).toEqual(["session-a/1", "session-a/3", "session-a/5"]);
    expect(found.toSorted()).toEqual([1, 2, 3, 4, 5].map((seq) => `session-a/${seq}`));
    expect(events.flatMap((event) => (event.name === "finding" ? [event.finding.code] : []))).toContain(
      "SEARCH_INDEX_BEHIND",
    );
  });
});

/** More records with each frequent word than SQLite ranks at once, and two sessions of another agent. */
const frequentRecords = 16_000;
const small = { namespace: "", agentId: "small", key: "agent:small:a" };

describe("a search for frequent words", { tags: ["slow"], timeout: 120_000 }, () => {
  let folder = "";
  let path = "";
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "throughline-sqlite-"));
    path = join(folder, "store.db");
    await using store = createSqliteStore({ path, defaultDurability: "process", searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [
      say("alpha beta gamma oldest"),
      say("quite rare delta"),
      say("unusual delta"),
      say("odd"),
    ]);
    const filler = Array.from({ length: frequentRecords }, (_, index) =>
      say(`${index % 2 === 0 ? "alpha beta" : "alpha gamma"} delta n${index}`),
    );
    await appendAll(store, ref, filler);
    await store.save(small, { sessionId: "small" }, { ifRevision: null });
    await store.append(small, [say("alpha beta gamma of the small one"), say("delta alone")]);
    await appendAll(store, ref, filler);
    await Array.fromAsync(store.search?.fill?.() ?? []);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const open = (): SessionStore => createSqliteStore({ path, searchFill: "on-demand" });

  it("leaves out a frequent word while three rarer words remain", async () => {
    await using store = open();
    const found = await ranked(store, ["alpha", "rare", "unusual", "odd"], { limit: 3 });
    expect(found.toSorted()).toEqual(["session-a/2", "session-a/3", "session-a/4"]);
  });

  it("uses the frequent words again where the rarer ones find too little", async () => {
    await using store = open();
    const words = ["delta", "rare", "unusual", "odd"];
    expect(await ranked(store, words, { agentId: "small" })).toEqual(["small/2"]);
    const found = await ranked(store, words, { limit: 30 });
    expect(new Set(found).size).toBe(30);
    expect(found.slice(0, 3).toSorted()).toEqual(["session-a/2", "session-a/3", "session-a/4"]);
    expect(found[3]).toBe(`session-a/${4 + 2 * frequentRecords}`);
    const scores = (await hitsOf(store, { anyOf: words, limit: 30 })).map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((one, other) => other - one));
  });

  it("ranks the newest records where even the rarest words are frequent, in each agent its own", async () => {
    await using store = open();
    const words = ["alpha", "beta", "gamma"];
    expect((await ranked(store, words, { agentId: "small" }))[0]).toBe("small/1");
    const newest = await ranked(store, words, { limit: 10 });
    expect(newest).toEqual(Array.from({ length: 10 }, (_, index) => `session-a/${4 + 2 * frequentRecords - index}`));
    const scores = (await hitsOf(store, { anyOf: words })).map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((one, other) => other - one));
  });
});
