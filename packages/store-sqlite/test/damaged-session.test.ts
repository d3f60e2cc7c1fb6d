import { join } from "node:path";
import Database from "better-sqlite3";
import type { SessionEvent } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

/** What may be wrong with the second of three sessions. */
const damages: readonly (readonly [string, string])[] = [
  ["an entry that is no JSON", "UPDATE store_entries SET entry = '{' WHERE session = 2"],
  ["an entry that is no object", "UPDATE store_entries SET entry = 'null' WHERE session = 2"],
  ["an entry that is bytes", "UPDATE store_entries SET entry = x'00' WHERE session = 2"],
  ["an entry that is gone", "DELETE FROM store_entries WHERE session = 2"],
  ["an open turn that is no JSON", "UPDATE store_sessions SET turn = '{' WHERE session = 2"],
];

describe("a damaged session", () => {
  it.each(damages)("is left out of a list and told of: %s", async (_what, sql) => {
    const path = join(testFolder(), "store.db");
    const events: SessionEvent[] = [];
    await using store = createSqliteStore({ path, onEvent: (event) => events.push(event) });
    const refs = [];
    for (const name of ["a", "b", "c"]) refs.push(await createSession(store, name));
    const database = new Database(path);
    database.exec(sql);
    database.close();
    const first = await store.list({ sort: "key", limit: 1 });
    const second = await store.list({ sort: "key", limit: 1, cursor: first.nextCursor ?? "" });
    expect([...first.sessions, ...second.sessions].map(({ ref }) => ref)).toEqual([refs[0], refs[2]]);
    expect(second.nextCursor).toBeNull();
    const findings = events.filter((event) => event.name === "finding");
    expect(findings).toMatchObject([{ ref: refs[1], finding: { code: "STORE_DAMAGED", key: refs[1]?.key, path } }]);
    await expect(store.load(refs[1] ?? expect.unreachable())).rejects.toMatchObject({
      code: expect.stringMatching(/^(STORE_CORRUPT|CODEC_FAILED)$/),
    });
    const found = await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? []);
    expect(found).toMatchObject([{ code: "STORE_DAMAGED", key: refs[1]?.key }]);
  });

  it("keeps nobody waiting where there are many of them, and a list among them can be aborted", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    const names = Array.from({ length: 2000 }, (_, index) => `s${String(index).padStart(4, "0")}`);
    await Promise.all(names.map((name) => createSession(store, name)));
    const database = new Database(path);
    database.exec("UPDATE store_entries SET entry = '{' WHERE session < 2000");
    database.close();
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const { sessions, nextCursor } = await store.list({ sort: "key", limit: 1 });
    isOver = true;
    expect([sessions.map(({ ref }) => ref), nextCursor]).toEqual([[refOf("s1999")], null]);
    expect(turns).toBeGreaterThan(2);
    const controller = new AbortController();
    setImmediate(() => controller.abort());
    await expect(store.list({ sort: "key", signal: controller.signal })).rejects.toMatchObject({ code: "ABORTED" });
  });

  it("is told of again when it was mended and damaged anew", async () => {
    const path = join(testFolder(), "store.db");
    const events: SessionEvent[] = [];
    await using store = createSqliteStore({ path, onEvent: (event) => events.push(event) });
    await createSession(store, "a");
    const database = new Database(path);
    const entry = database.prepare<[], string>("SELECT entry FROM store_entries").pluck().get();
    for (const kept of ["{", entry, "{"]) {
      database.prepare("UPDATE store_entries SET entry = ?").run(kept);
      for (let time = 0; time < 2; time++) expect((await store.list()).sessions).toHaveLength(kept === "{" ? 0 : 1);
    }
    database.close();
    expect(events.filter(({ name }) => name === "finding")).toHaveLength(2);
  });
});
