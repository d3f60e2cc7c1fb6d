import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import Database from "better-sqlite3";
import { ThroughlineError } from "@throughline/core";
import type { Clock, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createXorCodec } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { SqliteDriver } from "../src/connection.ts";
import { describe, expect, it } from "vitest";
import { schemaVersion } from "../src/schema.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

/** Name, mode and content of everything in a folder. */
function facts(folder: string): readonly string[] {
  return readdirSync(folder)
    .toSorted()
    .map((name) => {
      const path = join(folder, name);
      return [
        name,
        statSync(path).mode.toString(8),
        createHash("sha256").update(readFileSync(path)).digest("hex"),
      ].join(" ");
    });
}

async function codeOf(operation: Promise<unknown>): Promise<string> {
  return operation.then(
    () => "no error",
    (error: unknown) => (ThroughlineError.isInstance(error) ? error.code : String(error)),
  );
}

/** Every first operation on a store that cannot be opened. */
async function codesOf(open: () => SessionStore): Promise<ReadonlySet<string>> {
  const codes = new Set<string>();
  const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
  for (const operation of [
    (s: SessionStore) => s.load(ref),
    (s: SessionStore) => s.list(),
    (s: SessionStore) => s.append(ref, [say("x")]),
    (s: SessionStore) => s.save(ref, { sessionId: "a" }, { ifRevision: null }),
  ]) {
    await using store = open();
    codes.add(await codeOf(operation(store)));
  }
  return codes;
}

describe("opening a store", () => {
  it("makes files of mode 0600 in folders of mode 0700, under umask 022 too", async () => {
    const before = process.umask(0o022);
    try {
      const path = join(testFolder(), "deep/er/store.db");
      await using store = createSqliteStore({ path });
      const ref = await createSession(store, "a");
      await store.append(ref, [say("one")]);
      expect(readdirSync(join(path, "..")).toSorted()).toEqual(["store.db", "store.db-shm", "store.db-wal"]);
      for (const name of ["store.db", "store.db-shm", "store.db-wal"])
        expect(statSync(join(path, "..", name)).mode & 0o777).toBe(0o600);
      for (const folder of ["..", "../.."]) expect(statSync(join(path, folder)).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
  });

  it("reads every setting back as it must be", async () => {
    const opened: Database.Database[] = [];
    const driver: SqliteDriver = (path, options) => {
      const database = new Database(path, options);
      opened.push(database);
      return database;
    };
    await using store = createSqliteStore({ path: join(testFolder(), "store.db"), driver });
    await store.list();
    const database = opened.at(-1);
    const read = (name: string): unknown => database?.pragma(name, { simple: true });
    expect({
      journal: read("journal_mode"),
      sync: read("synchronous"),
      keys: read("foreign_keys"),
      trusted: read("trusted_schema"),
      cells: read("cell_size_check"),
      secure: read("secure_delete"),
      busy: read("busy_timeout"),
      page: read("page_size"),
      application: read("application_id"),
      version: read("user_version"),
    }).toEqual({
      journal: "wal",
      sync: 2,
      keys: 1,
      trusted: 0,
      cells: 1,
      secure: 1,
      busy: 0,
      page: 8192,
      application: 0x546c6e65,
      version: schemaVersion,
    });
    expect(Number(read("journal_size_limit"))).toBeGreaterThan(0);
  });

  it("refuses a setting that SQLite does not take", async () => {
    const driver: SqliteDriver = (path, options) => {
      const database = new Database(path, options);
      const pragma = database.pragma.bind(database);
      database.pragma = (text, how) => (text === "foreign_keys" ? 0 : pragma(text, how));
      return database;
    };
    expect(await codesOf(() => createSqliteStore({ path: join(testFolder(), "store.db"), driver }))).toEqual(
      new Set(["STORE_UNSUPPORTED"]),
    );
  });

  it("closes to one file that can be carried elsewhere", async () => {
    const folder = testFolder();
    const store = createSqliteStore({ path: join(folder, "store.db") });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one")]);
    await store.close();
    expect(readdirSync(folder)).toEqual(["store.db"]);
    const elsewhere = join(testFolder(), "other name.db");
    writeFileSync(elsewhere, readFileSync(join(folder, "store.db")));
    await using copy = createSqliteStore({ path: elsewhere, create: false });
    expect(await textsOf(copy, ref)).toEqual(["one"]);
  });

  it("says that there is no store when it may not create one, and leaves nothing behind", async () => {
    const folder = testFolder();
    expect(await codesOf(() => createSqliteStore({ path: join(folder, "none/store.db"), create: false }))).toEqual(
      new Set(["STORE_NOT_FOUND"]),
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each([
    ["text", (path: string) => writeFileSync(path, "no database at all\n".repeat(100))],
    ["one byte", (path: string) => writeFileSync(path, "x")],
    [
      "another program's database",
      (path: string) => {
        const other = new Database(path);
        other.exec("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)");
        other.close();
      },
    ],
    [
      "another program's database in WAL mode",
      (path: string) => {
        const other = new Database(path);
        other.pragma("journal_mode = WAL");
        other.exec("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)");
        other.close();
      },
    ],
  ])("refuses %s and leaves it as it is", async (what, make) => {
    const folder = testFolder();
    const path = join(folder, "store.db");
    make(path);
    chmodSync(path, 0o640);
    const before = facts(folder);
    const code = what.startsWith("another program") ? "STORE_FOREIGN" : "STORE_CORRUPT";
    expect(await codesOf(() => createSqliteStore({ path }))).toEqual(new Set([code]));
    expect(facts(folder)).toEqual(before);
  });

  it("follows no link, neither to the database nor to its log", async () => {
    const folder = testFolder();
    mkdirSync(join(folder, "elsewhere"));
    symlinkSync(join(folder, "elsewhere/target.db"), join(folder, "link.db"));
    expect(await codesOf(() => createSqliteStore({ path: join(folder, "link.db") }))).toEqual(new Set(["PATH_UNSAFE"]));
    symlinkSync(join(folder, "elsewhere/log"), join(folder, "store.db-wal"));
    expect(await codesOf(() => createSqliteStore({ path: join(folder, "store.db") }))).toEqual(
      new Set(["PATH_UNSAFE"]),
    );
    expect(readdirSync(join(folder, "elsewhere"))).toEqual([]);
    expect(existsSync(join(folder, "store.db"))).toBe(false);
  });

  it("refuses another codec than the one it was written under", async () => {
    const path = join(testFolder(), "store.db");
    const codec = createXorCodec();
    const store = createSqliteStore({ path, codec });
    await createSession(store, "a");
    await store.close();
    expect(await codesOf(() => createSqliteStore({ path }))).toEqual(new Set(["CODEC_FAILED"]));
    expect(await codesOf(() => createSqliteStore({ path, codec: { ...codec, name: "other" } }))).toEqual(
      new Set(["CODEC_FAILED"]),
    );
    await using again = createSqliteStore({ path, codec });
    expect((await again.list()).sessions).toHaveLength(1);
  });

  it("names the process that holds the lock, once the deadline has passed, and keeps the loop running", async () => {
    const path = join(testFolder(), "store.db");
    let [atMs, turns] = [systemClock.nowMs(), 0];
    const sleep = (milliseconds: number): Promise<void> => {
      atMs += milliseconds;
      return nextTurn().then(() => void turns++);
    };
    await using store = createSqliteStore({ path, clock: { nowMs: () => atMs, sleep }, lockTimeoutMs: 150 });
    const ref = await createSession(store, "a");
    const holder = new Database(path);
    holder.exec("BEGIN IMMEDIATE");
    try {
      const error: unknown = await store.append(ref, [say("one")]).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "STORE_LOCKED", outcome: "not-applied", retryable: true, details: { path } });
      if (process.platform === "linux") expect(error).toMatchObject({ details: { holderPid: process.pid } });
      expect(turns).toBeGreaterThan(2);
      // Opening and reading need no write lock.
      await using other = createSqliteStore({ path, lockTimeoutMs: 150 });
      expect(await textsOf(other, ref)).toEqual([]);
    } finally {
      holder.close();
    }
    await store.append(ref, [say("two")]);
    expect(await textsOf(store, ref)).toEqual(["two"]);
  });

  it("gives up in its time, also when the clock is set back meanwhile", { tags: ["slow"] }, async () => {
    const path = join(testFolder(), "store.db");
    let behindMs = 0;
    const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() - behindMs };
    await using store = createSqliteStore({ path, clock, lockTimeoutMs: 150 });
    const ref = await createSession(store, "a");
    const holder = new Database(path);
    holder.exec("BEGIN IMMEDIATE");
    const appending = expect(store.append(ref, [say("one")])).rejects.toMatchObject({ code: "STORE_LOCKED" });
    setTimeout(() => (behindMs = 3_600_000), 50);
    await appending;
    holder.exec("ROLLBACK");
    const reader = new Database(path, { readonly: true });
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM store_records").get();
    const purging = expect(store.remove(ref, { purge: true })).rejects.toMatchObject({ code: "STORE_LOCKED" });
    setTimeout(() => (behindMs = 7_200_000), 50);
    await purging;
    reader.close();
    holder.close();
  });
});
