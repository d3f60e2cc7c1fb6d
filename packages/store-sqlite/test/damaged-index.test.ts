import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

/** Changes one byte of the file: of the first place where these bytes are in a page of the table or index. */
function damage(path: string, name: string, bytes: readonly number[], change: readonly [at: number, to: number]): void {
  const database = new Database(path, { readonly: true });
  const pages = database
    .prepare<[string], { readonly offset: number; readonly size: number }>(
      "SELECT pgoffset AS offset, pgsize AS size FROM dbstat WHERE name = ?",
    )
    .all(name);
  database.close();
  const file = readFileSync(path);
  for (const { offset, size } of pages) {
    const found = file.subarray(offset, offset + size).indexOf(Buffer.from(bytes));
    if (found === -1) continue;
    file[offset + found + change[0]] = change[1];
    writeFileSync(path, file);
    return;
  }
  expect.unreachable(`no such bytes in ${name}`);
}

async function filled(path: string): Promise<void> {
  await using store = createSqliteStore({ path });
  for (const key of ["a", "b"]) {
    const ref = await createSession(store, key);
    await store.append(
      ref,
      Array.from({ length: 9 }, (_, index) => say(`${key}${index}`)),
    );
  }
}

const corrupt = { code: "STORE_CORRUPT" };
/** Of an index entry: its header says one byte each for a seq and a record, and that the session is 1. */
const entryOf = (seq: number, record: number): number[] => [4, 9, 1, 1, seq, record];
const recordIndex = "sqlite_autoindex_store_records_1";

async function readAll(store: SessionStore, key: string): Promise<unknown> {
  const ref = { namespace: "", agentId: "main", key: `agent:main:${key}` };
  const { sessions } = await store.list({ state: "any" });
  const found = sessions.find((each) => each.ref.key.endsWith(`:${key}`))?.ref ?? ref;
  return Array.fromAsync(store.read(found));
}

describe("a damaged index", () => {
  it.each([
    ["leads back", entryOf(6, 6), [4, 2]],
    ["leads on", entryOf(6, 6), [4, 60]],
    ["leads to another record", entryOf(6, 6), [5, 5]],
    ["leads to another session's record", entryOf(6, 6), [5, 15]],
  ] as const)("of records that %s ends the read with an error", async (_what, bytes, change) => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    damage(path, recordIndex, bytes, change);
    await using store = createSqliteStore({ path });
    await expect(readAll(store, "a")).rejects.toMatchObject(corrupt);
    await expect(store.maintenance?.backup(`${path}.copy`)).rejects.toMatchObject(corrupt);
    const findings = await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? []);
    expect(findings.map(({ code }) => code)).toContain("STORE_DAMAGED");
  });

  it("of sessions that hides one does not let it be made again", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    const text = [...Buffer.from("agent:main:")];
    await using before = createSqliteStore({ path });
    const [one] = (await before.list({ sort: "key" })).sessions;
    await before.close();
    const ref = one?.ref ?? expect.unreachable();
    damage(path, "store_sessions_current", [...Buffer.from(ref.key)], [text.length, 0x01]);
    await using store = createSqliteStore({ path });
    await expect(store.load(ref)).rejects.toMatchObject(corrupt);
    await expect(store.save(ref, { sessionId: "other" }, { ifRevision: null })).rejects.toMatchObject(corrupt);
  });
});

describe("a record whose columns were changed", () => {
  it.each(["side = 1 - side", "ts_ms = ts_ms + 1", "stored_at_ms = 5", "role = 'user '", "bytes = bytes + 1"])(
    "is refused by every read: %s",
    async (sql) => {
      const path = join(testFolder(), "store.db");
      await filled(path);
      const database = new Database(path);
      database.exec(`UPDATE store_records SET ${sql} WHERE seq = 3`);
      database.close();
      await using store = createSqliteStore({ path });
      const { sessions } = await store.list();
      for (const { ref } of sessions) {
        await expect(Array.fromAsync(store.read(ref, { payload: "head" }))).rejects.toMatchObject(corrupt);
        if (!sql.startsWith("role")) await expect(Array.fromAsync(store.read(ref))).rejects.toMatchObject(corrupt);
      }
    },
  );
});

describe("a text of a row that became bytes", () => {
  // SQLite tells the two apart by one bit of the row's header, and the bytes stay the same.
  const asBytes = (text: string): [type: number, changed: number] => [13 + 2 * text.length, 12 + 2 * text.length];

  it("is refused by a read that shows it", async () => {
    const path = join(testFolder(), "store.db");
    await using before = createSqliteStore({ path });
    const ref = await createSession(before, "a");
    await before.append(ref, [say("one"), say("two", { id: "a-given-id" })]);
    await before.close();
    const [type, changed] = asBytes("a-given-id");
    damage(path, "store_records", [0, 9, 1, type], [3, changed]);
    await using store = createSqliteStore({ path });
    await expect(Array.fromAsync(store.read(ref, { payload: "head" }))).rejects.toMatchObject(corrupt);
    await expect(store.maintenance?.backup(`${path}.copy`)).rejects.toMatchObject(corrupt);
  });

  it("is refused where the row is that of a session", async () => {
    const path = join(testFolder(), "store.db");
    await using before = createSqliteStore({ path });
    const ref = await createSession(before, "a");
    await before.close();
    const [type, changed] = asBytes("session-a");
    const key = 13 + 2 * ref.key.length;
    damage(path, "store_sessions", [key, 8, type], [2, changed]);
    await using store = createSqliteStore({ path });
    await expect(store.load(ref)).rejects.toMatchObject(corrupt);
  });
});

describe("a text that became a number", () => {
  // The columns of payloads take every type, and one bit of the row's header decides the type.
  async function changed(sql: string): Promise<string> {
    const path = join(testFolder(), "store.db");
    await filled(path);
    const database = new Database(path);
    expect(database.prepare(sql).run().changes).toBe(1);
    database.close();
    return path;
  }

  it.each([
    ["text", "UPDATE store_records SET text = 0 WHERE record = 3"],
    ["source", "UPDATE store_records SET source = 0, source_form = 1 WHERE record = 3"],
  ])("is damage to a record, to a backup and to verify: its %s", async (_what, sql) => {
    const path = await changed(sql);
    await using store = createSqliteStore({ path, recover: false });
    const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
    await expect(Array.fromAsync(store.read(ref, { payload: "source" }))).rejects.toMatchObject(corrupt);
    await expect(store.maintenance?.backup(`${path}.copy`)).rejects.toMatchObject(corrupt);
    const findings = await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? []);
    expect(findings).toMatchObject([{ severity: "error", recordId: expect.any(String) }]);
  });

  it("is damage to an entry", async () => {
    const path = await changed("UPDATE store_entries SET entry = 0 WHERE session = 1");
    await using store = createSqliteStore({ path, recover: false });
    const load = store.load({ namespace: "", agentId: "main", key: "agent:main:a" });
    await expect(load).rejects.toMatchObject(corrupt);
    await expect(store.maintenance?.backup(`${path}.copy`)).rejects.toMatchObject(corrupt);
  });
});

describe("a schema of which one byte changed", () => {
  it.each([
    ["the name of a column", "entry ANY"],
    ["the option of the search", "tokenize ="],
  ])("is damage to every read, and to a backup: %s", async (_what, text) => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    damage(path, "sqlite_schema", [...Buffer.from(text)], [1, 0x6d]);
    await using store = createSqliteStore({ path });
    const load = store.load({ namespace: "", agentId: "main", key: "agent:main:a" });
    await expect(load).rejects.toMatchObject(corrupt);
    await expect(store.list()).rejects.toMatchObject(corrupt);
    await expect(store.maintenance?.backup(`${path}.copy`)).rejects.toMatchObject(corrupt);
  });
});

describe("purging", () => {
  it("hands records to forks with checksums that match", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one"), say("two")]);
    const fork = { ...ref, key: `${ref.key}-fork` };
    await store.fork?.fork(ref, fork, { sessionId: "fork" });
    await store.append(fork, [say("three")]);
    await store.remove(ref, { purge: true });
    const seqs = await Array.fromAsync(store.read(fork, { payload: "source" }));
    expect(seqs.flatMap(({ records }) => records.map(({ seq }) => seq))).toEqual([1, 2, 3]);
    expect(await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? [])).toEqual([]);
  });
});
