import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import type { ListQuery, SessionEvent, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refOf } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { testFolder } from "./test-folder.ts";

const source = { format: "pi", sourceId: "one" };
const importedFrom = { format: "pi", sessionId: "one" };

/** More than one page of each index, so that there are interior pages. */
const manySessions = 700;

const queries: readonly ListQuery[] = [
  {},
  { state: "any" },
  { sort: "key" },
  { agentId: "main", sort: "key" },
  { agentId: "main", sort: "key", state: "any" },
  { agentId: "main", keyPrefix: "agent:main:s" },
  { keyPrefix: "agent:main:s" },
  { sinceMs: 1, untilMs: 8e15 },
];

interface Page {
  readonly offset: number;
  readonly isLeaf: boolean;
}

async function filled(path: string, sessions: number): Promise<string> {
  let atMs = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, nowMs: () => (atMs += 1000) };
  await using store = createSqliteStore({ path, clock, defaultDurability: "process" });
  for (let index = 0; index < sessions; index++) {
    const name = `s${String(index).padStart(3, "0")}`;
    await store.save(refOf(name), { sessionId: `session-${name}`, importedFrom }, { ifRevision: null });
  }
  return path;
}

function pagesOf(path: string, name: string): readonly Page[] {
  const database = new Database(path, { readonly: true });
  const pages = database
    .prepare<[string], { readonly offset: number; readonly type: string }>(
      "SELECT pgoffset AS offset, pagetype AS type FROM dbstat WHERE name = ? ORDER BY pgoffset",
    )
    .all(name);
  database.close();
  return pages.map(({ offset, type }) => ({ offset, isLeaf: type === "leaf" }));
}

/** Lets a page of the table or index have one row or child less than it holds: its header counts them. */
function shorten(path: string, name: string, isLeaf: boolean): void {
  const page = pagesOf(path, name).find((each) => each.isLeaf === isLeaf) ?? expect.unreachable();
  const file = readFileSync(path);
  const at = page.offset + 3;
  file.writeUInt16BE(file.readUInt16BE(at) - 1, at);
  writeFileSync(path, file);
}

async function keysOf(store: SessionStore, query: ListQuery, limit: number): Promise<readonly string[]> {
  const keys: string[] = [];
  for (let cursor: string | null = null; ;) {
    const page = await store.list({ limit, ...query, ...(cursor === null ? {} : { cursor }) });
    keys.push(...page.sessions.map(({ ref }) => ref.key));
    if (page.nextCursor === null) return keys;
    cursor = page.nextCursor;
  }
}

describe("a list over damaged pages", () => {
  const tables = [
    "store_sessions",
    "store_sessions_updated",
    "store_sessions_key",
    "store_sessions_current",
    "store_sessions_source",
    "store_sessions_digest",
  ];
  const cases = tables.flatMap((name) => [true, false].map((isLeaf) => [name, isLeaf] as const));
  let whole = "";
  beforeAll(async () => {
    whole = await filled(join(mkdtempSync(join(tmpdir(), "throughline-sqlite-")), "store.db"), manySessions);
  });
  afterAll(() => rmSync(dirname(whole), { recursive: true }));
  it.each(cases)("of %s, a leaf: %s, is refused, with filters and without", async (name, isLeaf) => {
    const path = join(testFolder(), "store.db");
    copyFileSync(whole, path);
    shorten(path, name, isLeaf);
    const bySource: readonly ListQuery[] = /source|digest/.test(name) ? [{ importedFrom: source }] : [];
    for (const query of [...queries, ...bySource]) {
      await using store = createSqliteStore({ path });
      for (const limit of [150, 1000])
        await expect(keysOf(store, query, limit), JSON.stringify(query)).rejects.toMatchObject({
          code: "STORE_CORRUPT",
        });
    }
  });
});

it.each<readonly [string, ListQuery, number]>([
  ["of all sessions", {}, 3],
  ["of an agent that has most of them", { agentId: "main" }, 3],
  ["of an agent that has few", { agentId: "other" }, 1],
  ["of archived sessions", { state: "archived" }, 1],
  ["of another namespace", { namespace: "tenant" }, 1],
  ["by prefix", { keyPrefix: "agent:other" }, 1],
])("three lists %s compare the table with its indexes as often as their length bears", async (_what, query, times) => {
  const path = await filled(join(testFolder(), "store.db"), 20);
  const { driver, statements } = createFaultyDriver();
  await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
  await store.save({ ...refOf("x"), agentId: "other" }, { sessionId: "other" }, { ifRevision: null });
  for (let round = 0; round < 3; round++) await store.list(query);
  expect(statements().filter((sql) => sql.includes("AS byDigest"))).toHaveLength(times);
});

/** Changes one byte in the first of these bytes in the table of sessions, and in no index. */
function changeRow(path: string, bytes: Buffer, at: number, to: number): void {
  const file = readFileSync(path);
  for (const { offset } of pagesOf(path, "store_sessions")) {
    const found = file.subarray(offset, offset + 8192).indexOf(bytes);
    if (found === -1) continue;
    file[offset + found + at] = to;
    writeFileSync(path, file);
    return;
  }
  expect.unreachable("no such bytes");
}

function changeBy(path: string, sql: string): void {
  const database = new Database(path);
  expect(database.prepare(`${sql} WHERE key = 'agent:main:s003'`).run().changes).toBe(1);
  database.close();
}

/** The time of a row as its bytes. */
function timeOf(path: string): Buffer {
  const database = new Database(path, { readonly: true });
  const sql = "SELECT updated_at_ms FROM store_sessions WHERE key = 'agent:main:s003'";
  const time = database.prepare<[], number>(sql).pluck().get() ?? expect.unreachable();
  database.close();
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(time, 0, 6);
  return bytes;
}

describe("a list with a damaged row", () => {
  const damages: readonly (readonly [string, (path: string) => void])[] = [
    ["its key", (path) => changeRow(path, Buffer.from("agent:main:s003"), 11, 0x74)],
    ["its agent", (path) => changeRow(path, Buffer.from("mainagent:main:s003"), 0, 0x6e)],
    ["its times, to long ago", (path) => changeTimes(path, 0)],
    ["its times, to the future", (path) => changeTimes(path, 0x7f)],
    ["its key, in the indexes too", (path) => changeBy(path, "UPDATE store_sessions SET key = 'agent:main:t'")],
    ["its state, in the indexes too", (path) => changeBy(path, "UPDATE store_sessions SET archived = 1")],
    ["its source, in the index too", (path) => changeBy(path, "UPDATE store_sessions SET source_digest = 'a'")],
    ["the minute it is listed by", (path) => changeBy(path, "UPDATE store_sessions SET updated_slot = 1")],
    [
      "its time, with its minute",
      (path) => changeBy(path, "UPDATE store_sessions SET updated_slot = 1, updated_at_ms = 1"),
    ],
  ];
  const changeTimes = (path: string, to: number): void => {
    const time = timeOf(path);
    changeRow(path, Buffer.concat([time, time]), 6, to);
  };
  it.each(damages)("gives all others and names it: %s", async (_what, damage) => {
    const path = await filled(join(testFolder(), "store.db"), 6);
    damage(path);
    for (const query of queries)
      for (const limit of [1, 2, 3, 100]) {
        const events: SessionEvent[] = [];
        await using store = createSqliteStore({ path, onEvent: (event) => events.push(event) });
        const keys = await keysOf(store, { ...query, sinceMs: 100_000 }, limit);
        expect(keys.filter((key) => key !== "agent:main:s003").toSorted(), JSON.stringify({ query, limit })).toEqual(
          [0, 1, 2, 4, 5].map((index) => `agent:main:s00${index}`),
        );
        const findings = events.flatMap((event) => (event.name === "finding" ? [event.finding.code] : []));
        expect(findings, JSON.stringify({ query, limit })).toEqual(["STORE_DAMAGED"]);
      }
  });
});
