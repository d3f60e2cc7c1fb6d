import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import type { Finding, SessionEvent, SessionRef, SessionStore } from "@throughline/core";
import { flipByte } from "@throughline/store-conformance";
import { createSqliteStore, restoreSqliteBackup } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { remoteFileSystem } from "../src/file-facts.ts";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

async function findingsOf(findings: AsyncIterable<Finding> | undefined): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const each of findings ?? []) found.push(each);
  return found;
}

async function codesOf(store: SessionStore, full: boolean): Promise<string[]> {
  return (await findingsOf(store.maintenance?.verify({ full }))).map(({ code }) => code);
}

/** A closed store with two sessions, of which one holds a large record. */
async function filled(path: string): Promise<SessionRef[]> {
  await using store = createSqliteStore({ path });
  const refs = [await createSession(store, "a"), await createSession(store, "b")];
  for (const ref of refs) await store.append(ref, [say("one"), say(`large ${"x".repeat(300_000)}`), say("three")]);
  return refs;
}

describe("verify", () => {
  it("finds nothing in a whole store, quick or full", async () => {
    const path = join(testFolder(), "store.db");
    const [ref] = await filled(path);
    await using store = createSqliteStore({ path });
    await store.fork?.fork(ref ?? expect.unreachable(), refOf("f"), { sessionId: "f", atSeq: 2 });
    expect([await codesOf(store, false), await codesOf(store, true)]).toEqual([[], []]);
  });

  it.each([
    ["a record that is gone", "DELETE FROM store_records WHERE seq = 2", false, "RECORD_MISSING"],
    ["an entry that is gone", "DELETE FROM store_entries WHERE session = 1", false, "STORE_DAMAGED"],
    ["an origin that is gone", "DELETE FROM store_sessions WHERE session = 2", false, "RECORD_MISSING"],
    ["a row that was changed", "UPDATE store_sessions SET last_seq = 1 WHERE session = 2", false, "STORE_DAMAGED"],
    [
      "text that was changed",
      `UPDATE store_records SET text = replace(text, 'one', 'two') WHERE session = 1`,
      true,
      "CHECKSUM_MISMATCH",
    ],
    ["a payload that is gone", "DELETE FROM store_payloads", true, "STORE_DAMAGED"],
    [
      "a column that says something else",
      "UPDATE store_records SET parent_id = 'other' WHERE session = 1 AND seq = 3",
      true,
      "STORE_DAMAGED",
    ],
    ["an entry that is none", "UPDATE store_entries SET entry = '{'", false, "STORE_DAMAGED"],
  ])("finds %s", async (_what, sql, full, code) => {
    const path = join(testFolder(), "store.db");
    const [, ref] = await filled(path);
    await using before = createSqliteStore({ path });
    await before.fork?.fork(ref ?? expect.unreachable(), refOf("fork"), { sessionId: "fork", atSeq: 2 });
    await before.close();
    const database = new Database(path);
    database.pragma("foreign_keys = OFF");
    database.exec(sql);
    database.close();
    await using store = createSqliteStore({ path });
    if (full) expect(await codesOf(store, false)).toEqual([]);
    const [first] = await findingsOf(store.maintenance?.verify({ full }));
    expect(first).toMatchObject({ code, severity: "error", path });
  });

  it("finds one flipped bit, which SQLite's own check does not", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    const at = readFileSync(path).indexOf('"content":"three"');
    await flipByte(path, at + 12, 0x01);
    const database = new Database(path, { readonly: true });
    expect(database.pragma("quick_check", { simple: true })).toBe("ok");
    database.close();
    await using store = createSqliteStore({ path });
    expect(await codesOf(store, true)).toEqual(["CHECKSUM_MISMATCH"]);
  });
});

describe("backups", () => {
  it("are consistent copies while others write, private, and never overwrite", async () => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    const [ref = refOf("a")] = await filled(path);
    await using store = createSqliteStore({ path });
    const target = join(folder, "copy.backup");
    let isDone = false;
    const backup = store.maintenance?.backup(target).then((result) => {
      isDone = true;
      return result;
    });
    let appended = 0;
    while (!isDone) {
      await store.append(ref, [say(`n${appended}`), say(`m${appended}`)], { durability: "process" });
      appended++;
    }
    expect(await backup).toEqual({ sizeBytes: statSync(target).size });
    expect(statSync(target).mode & 0o777).toBe(0o600);
    await expect(store.maintenance?.backup(target)).rejects.toMatchObject({ code: "EXPORT_EXISTS" });
    await using copy = createSqliteStore({ path: target, create: false });
    expect(await codesOf(copy, true)).toEqual([]);
    // The moment it was begun: whole appends, and none of those that came later.
    const texts = await textsOf(copy, ref);
    expect((texts.length - 3) % 2).toBe(0);
    expect(texts.slice(0, 1)).toEqual(["one"]);
    expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
  });

  it("that cannot be made where they shall lie are refused with a code", async () => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    await filled(path);
    await using store = createSqliteStore({ path });
    for (const target of [join(folder, "none/copy.db"), join(folder, "n".repeat(250)), join(path, "copy.db")])
      await expect(store.maintenance?.backup(target)).rejects.toMatchObject({
        code: "STORE_IO",
        outcome: "not-applied",
      });
    expect(readdirSync(folder).filter((name) => !name.startsWith("store.db"))).toEqual([]);
  });

  it("are one file each, and reading one to restore it leaves nothing beside it", async () => {
    const [folder, elsewhere] = [testFolder(), testFolder()];
    const path = join(folder, "store.db");
    await filled(path);
    const backupPath = join(elsewhere, "one.backup");
    // What a process that was killed has left of the same backup.
    for (const left of ["part", "part-wal", "part-shm", "under-way"]) writeFileSync(`${backupPath}.${left}`, "left");
    {
      await using store = createSqliteStore({ path });
      await store.maintenance?.backup(backupPath);
      await store.maintenance?.backup(`${path}.two.backup`);
    }
    expect([readdirSync(elsewhere), readdirSync(folder).toSorted()]).toEqual([
      ["one.backup"],
      ["store.db", "store.db.two.backup"],
    ]);
    const before = readFileSync(backupPath);
    restoreSqliteBackup({ backupPath, path, keptAs: "kept" });
    expect([readdirSync(elsewhere), readFileSync(backupPath).equals(before)]).toEqual([["one.backup"], true]);
    writeFileSync(path, "torn");
    {
      await using store = createSqliteStore({ path });
      expect(await textsOf(store, refOf("a"))).toHaveLength(3);
    }
    const names = readdirSync(folder).filter((name) => !name.includes(".damaged-"));
    expect(names.toSorted()).toEqual(["store.db", "store.db.kept", "store.db.two.backup"]);
  });

  it("with a log of their own, as a copy made by hand may have one, are restored with what it holds", async () => {
    const [folder, elsewhere] = [testFolder(), testFolder()];
    const path = join(folder, "store.db");
    const backupPath = join(elsewhere, "by-hand.db");
    {
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      const ref = await createSession(store, "a");
      await store.append(ref, [say("only in the log")]);
      for (const side of ["", "-wal"]) copyFileSync(`${path}${side}`, `${backupPath}${side}`);
      await store.append(ref, [say("later")]);
    }
    restoreSqliteBackup({ backupPath, path, keptAs: "kept" });
    await using store = createSqliteStore({ path });
    expect(await textsOf(store, refOf("a"))).toEqual(["only in the log"]);
    expect(readdirSync(elsewhere).toSorted()).toEqual(["by-hand.db", "by-hand.db-wal"]);
  });

  it("take the place of a store nobody has open, which is kept", async () => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    const [ref = refOf("a")] = await filled(path);
    const backupPath = join(folder, "early.backup");
    {
      await using store = createSqliteStore({ path });
      await store.maintenance?.backup(backupPath);
      await store.append(ref, [say("later")]);
      expect(() => restoreSqliteBackup({ backupPath, path, keptAs: "kept" })).toThrow(
        expect.objectContaining({ code: "STORE_LOCKED" }),
      );
    }
    expect(restoreSqliteBackup({ backupPath, path, keptAs: "kept" })).toEqual({ keptPath: `${path}.kept` });
    await using restored = createSqliteStore({ path });
    await using kept = createSqliteStore({ path: `${path}.kept` });
    expect([(await textsOf(restored, ref)).length, (await textsOf(kept, ref)).at(-1)]).toEqual([3, "later"]);
    writeFileSync(join(folder, "text.backup"), "no backup");
    expect(() => restoreSqliteBackup({ backupPath: join(folder, "text.backup"), path, keptAs: "x" })).toThrow(
      expect.objectContaining({ code: "STORE_CORRUPT" }),
    );
  });
});

describe("a store whose file can no longer be read", () => {
  it.each([
    ["text", (path: string) => writeFileSync(path, "torn")],
    ["a header of zeros", (path: string) => writeFileSync(path, Buffer.alloc(16_384))],
    [
      "a schema that is garbage",
      (path: string) => {
        const bytes = readFileSync(path);
        bytes.fill(0x5a, 100, 8192);
        writeFileSync(path, bytes);
      },
    ],
  ])("comes back from its newest backup, keeps what was there and says so: %s", async (_what, damage) => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    const [ref = refOf("a")] = await filled(path);
    {
      await using store = createSqliteStore({ path });
      await store.maintenance?.backup(`${path}.one.backup`);
    }
    writeFileSync(`${path}.two.backup`, "newer, and no backup");
    damage(path);
    const damaged = readFileSync(path);
    const events: SessionEvent[] = [];
    await using store = createSqliteStore({ path, onEvent: (event) => events.push(event) });
    expect(await textsOf(store, ref)).toHaveLength(3);
    const [event] = events;
    expect(event).toMatchObject({
      name: "finding",
      finding: { code: "STORE_RESTORED", severity: "error", repaired: true },
    });
    const kept = event?.name === "finding" ? (event.finding.path ?? "") : "";
    expect(readFileSync(kept).equals(damaged)).toBe(true);
    expect(existsSync(`${path}.recovery`)).toBe(false);
    expect(dirname(kept)).toBe(folder);
  });

  it("is left as it is when it may not be replaced", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    copyFileSync(path, `${path}.one.backup`);
    writeFileSync(path, "torn");
    await using store = createSqliteStore({ path, recover: false });
    await expect(store.list()).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(readFileSync(path, "utf8")).toBe("torn");
  });

  it("is repaired into a copy with a note where a record was", async () => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    const [ref = refOf("a"), other = refOf("b")] = await filled(path);
    const database = new Database(path);
    database.exec(
      "UPDATE store_records SET text = 'garbage' WHERE session = 1 AND seq = 1; DELETE FROM store_entries WHERE session = 2",
    );
    database.close();
    const before = readFileSync(path);
    await using store = createSqliteStore({ path });
    const findings = await findingsOf(store.maintenance?.repair());
    const copyPath = findings.at(-1)?.path ?? "";
    expect(findings.at(-1)).toMatchObject({ code: "STORE_DAMAGED", repaired: true });
    expect(readFileSync(path).equals(before)).toBe(true);
    await using copy = createSqliteStore({ path: copyPath, create: false });
    expect((await textsOf(copy, ref)).map((text) => String(text).slice(0, 5))).toEqual(["undef", "large", "three"]);
    expect((await copy.load(other))?.entry).toEqual({ sessionId: "session-b" });
    expect(await codesOf(copy, true)).toEqual([]);
  });
});

describe("where a store lies", () => {
  it("network file systems are known by their number", () => {
    expect([0x6969, 0xfe534d42, -28_095_166, 0x65735546, 0xef53, 0x01021994].map(remoteFileSystem)).toEqual([
      "NFS",
      "SMB",
      "SMB",
      "FUSE",
      null,
      null,
    ]);
  });
});
