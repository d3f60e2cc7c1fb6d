import { join } from "node:path";
import Database from "better-sqlite3";
import type { SessionEvent } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { expect, it } from "vitest";
import { refOf } from "./append-drafts.ts";
import { testFolder } from "./test-folder.ts";

const limits = { pageBytes: 10_000 };

it("a page of a list ends where its entries fill the bytes of a page, and reads none behind it", async () => {
  const path = join(testFolder(), "store.db");
  const events: SessionEvent[] = [];
  await using store = createSqliteStore({ path, limits, onEvent: (event) => events.push(event) });
  const names = Array.from({ length: 9 }, (_, index) => `s${index}`);
  for (const name of names) {
    const text = "x".repeat(name === "s4" ? 30_000 : 4_000);
    await store.save(refOf(name), { sessionId: `session-${name}`, text }, { ifRevision: null });
  }
  const pages: string[][] = [];
  for (let cursor: string | null = null; ;) {
    const page = await store.list({ sort: "key", limit: 100, ...(cursor === null ? {} : { cursor }) });
    pages.push(page.sessions.map(({ ref }) => ref.key.slice("agent:main:".length)));
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  expect(pages).toEqual([["s0", "s1", "s2"], ["s3", "s4"], ["s5", "s6", "s7"], ["s8"]]);
  const limited = await store.list({ sort: "key", limit: 2 });
  expect(limited.sessions).toHaveLength(2);

  // An entry that is not shown is not read: a damaged one of the next page has no finding yet.
  const database = new Database(path);
  database.exec("UPDATE store_entries SET entry = '{' WHERE session = 5");
  database.close();
  const first = await store.list({ sort: "key", limit: 100 });
  expect([first.sessions.length, events.filter(({ name }) => name === "finding")]).toEqual([3, []]);
});
