import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { createXorCodec } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

function count(path: string, sql: string): unknown {
  const database = new Database(path, { readonly: true });
  try {
    return database.prepare(sql).pluck().get();
  } finally {
    database.close();
  }
}

function isKept(path: string, text: string): boolean {
  const folder = join(path, "..");
  return readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(text));
}

const large = `secret-${"é".repeat(200_000)}`;

describe("large payloads", () => {
  it("lie beside their record, come back whole, and go when nobody needs them", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    const line = `{"type":"message","id":"l","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","message":{"role":"user","content":"${large}"}}`;
    const other = await createSession(store, "b");
    await store.append(ref, [{ source: line }, say("small")]);
    await store.append(other, [{ source: line }, say("small")]);
    const small = { id: "n", type: "message", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
    await store.append(ref, [
      { source: `${line} `, record: { ...small, message: { role: "user", content: "meaning" } } },
    ]);
    // Once for both sessions, and the line of the third, which is another.
    expect(count(path, "SELECT count(*) FROM store_payloads")).toBe(2);
    for await (const { records } of store.read(ref, { payload: "source" }))
      expect(records.map(({ source, bytes }) => [source === line || source === `${line} `, bytes > 400_000])).toEqual([
        [true, true],
        [false, false],
        [true, true],
      ]);
    expect(count(path, "SELECT length(data) FROM records WHERE seq = 1")).toBe(line.length);
    expect(count(path, "SELECT length(source) FROM records WHERE id = 'n'")).toBe(line.length + 1);
    await store.redact(ref, ["l"], { reason: "test" });
    expect(count(path, "SELECT count(*) FROM store_payloads")).toBe(2);
    expect((await textsOf(store, other))[0]).toBe(large);
    await store.remove(other, { purge: true });
    expect(count(path, "SELECT count(*) FROM store_payloads")).toBe(1);
    await store.redact(ref, ["n"], { reason: "test" });
    expect(count(path, "SELECT count(*) FROM store_payloads")).toBe(0);
    expect([isKept(path, "secret-"), isKept(path, "éééé")]).toEqual([false, false]);
  });

  it("are bound to their session under a codec, also after its origin was purged", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, codec: createXorCodec() });
    const ref = await createSession(store, "a");
    await store.append(ref, [say(large, { id: "l" }), say("two")]);
    await store.fork?.fork(ref, refOf("b"), { sessionId: "b" });
    await store.remove(ref, { purge: true });
    expect(await textsOf(store, refOf("b"))).toEqual([large, "two"]);
    expect(count(path, "SELECT count(*) FROM store_payloads")).toBe(1);
    expect(isKept(path, "secret-")).toBe(false);
    await store.remove(refOf("b"), { purge: true });
    expect(count(path, "SELECT count(*) FROM store_payloads")).toBe(0);
  });
});

describe("forks", () => {
  it("cost the same whatever their origin holds", async () => {
    const path = join(testFolder(), "store.db");
    const { driver, statements } = createFaultyDriver();
    await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    const costs: string[][] = [];
    for (const [round, records] of [10, 1000, 3000].entries()) {
      const last = (await store.load(ref))?.head.lastSeq ?? 0;
      for (let at = last; at < records; at += 500)
        await store.append(
          ref,
          Array.from({ length: Math.min(500, records - at) }, () => say("x")),
          { durability: "process" },
        );
      const from = statements().length;
      await store.fork?.fork(ref, refOf(`f${round}`), { sessionId: `f${round}` });
      costs.push(statements().slice(from));
    }
    expect(costs[1]).toEqual(costs[0]);
    expect(costs[2]).toEqual(costs[0]);
    expect(count(path, "SELECT count(*) FROM store_records")).toBe(3000);
    // At an earlier place the messages behind it are counted, in slices.
    const state = await store.fork?.fork(ref, refOf("early"), { sessionId: "early", atSeq: 2500 });
    expect([state?.head.lastSeq, state?.messageCount]).toEqual([2500, 2500]);
  });

  it("show what they share in the views", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one"), say("two"), say("three")]);
    await store.fork?.fork(ref, refOf("b"), { sessionId: "b", atSeq: 2 });
    await store.append(refOf("b"), [say("own")]);
    await store.fork?.fork(refOf("b"), refOf("c"), { sessionId: "c", atSeq: 1 });
    const database = new Database(path, { readonly: true });
    const rows = database.prepare("SELECT session_id, content FROM messages ORDER BY session_id, seq").raw().all();
    database.close();
    expect(rows).toEqual([
      ["b", "one"],
      ["b", "two"],
      ["b", "own"],
      ["c", "one"],
      ["session-a", "one"],
      ["session-a", "two"],
      ["session-a", "three"],
    ]);
  });
});
