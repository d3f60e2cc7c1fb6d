import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PartialReply, SessionRef } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:a" };
const partial: PartialReply = {
  v: 1,
  sessionId: "a",
  turnId: "turn-1",
  fence: 1,
  step: 1,
  attempt: 0,
  afterSeq: 1,
  provider: "provider",
  api: "api",
  model: null,
  text: "the first words",
  updatedMs: 1,
};

let folder: string;
let path: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "partials-"));
  path = join(folder, "store.db");
  await using store = createSqliteStore({ path });
  await store.save(ref, { sessionId: "a" }, { ifRevision: null });
  const turn = { action: "open", turnId: "turn-1", owner: "o", leaseUntilMs: 1, fence: 1 } as const;
  await store.append(ref, [{ type: "message", message: { role: "user", content: "question" } }], { turn });
  await store.partials?.write(ref, partial);
});

afterEach(() => rmSync(folder, { recursive: true }));

describe("a stored partial", () => {
  it.each([
    ["of a later version", `replace(partial, '"v":1', '"v":2')`, "STORE_VERSION_UNSUPPORTED"],
    ["that is no JSON", `replace(partial, '"v":1', '"v:1')`, "STORE_CORRUPT"],
    ["without a field", `replace(partial, '"step":1', '"other":1')`, "STORE_CORRUPT"],
    ["of JSON that is no object", "'7'", "STORE_CORRUPT"],
    ["with another word", `replace(partial, 'first', 'fjrst')`, "STORE_CORRUPT"],
    ["of another provider", `replace(partial, '"provider":"p', '"provider":"q')`, "STORE_CORRUPT"],
  ])("%s is refused, and the next one replaces it", async (_name, expression, code) => {
    const database = new Database(path);
    expect(database.prepare(`UPDATE store_partials SET partial = ${expression}`).run().changes).toBe(1);
    database.close();
    await using store = createSqliteStore({ path });
    await expect(store.partials?.read(ref)).rejects.toMatchObject({ code });
    await store.partials?.write(ref, partial);
    expect(await store.partials?.read(ref)).toEqual(partial);
  });

  it.each(["fence = 9", "turn_id = 'turn-9'"])("is refused when its row says something else: %s", async (change) => {
    const database = new Database(path);
    database.prepare(`UPDATE store_partials SET ${change}`).run();
    database.close();
    await using store = createSqliteStore({ path });
    await expect(store.partials?.read(ref)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });

  it("costs no preparation of a statement after the first", async () => {
    const prepared: string[] = [];
    await using store = createSqliteStore({
      path,
      driver: (file, options) => {
        const database = new Database(file, options);
        const prepare = database.prepare.bind(database);
        database.prepare = ((sql: string) => (prepared.push(sql), prepare(sql))) as typeof database.prepare;
        const exec = database.exec.bind(database);
        database.exec = (sql) => (prepared.push(sql), exec(sql));
        return database;
      },
    });
    await store.partials?.write(ref, partial);
    await store.partials?.read(ref);
    const before = prepared.length;
    for (let index = 0; index < 20; index++) await store.partials?.write(ref, { ...partial, text: `words ${index}` });
    expect((await store.partials?.read(ref))?.text).toBe("words 19");
    expect(prepared.slice(before)).toEqual([]);
  });
});
