import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { SessionStore } from "@throughline/core";
import { flipByte } from "@throughline/store-conformance";
import { createSqliteStore, restoreSqliteBackup } from "@throughline/store-sqlite";
import { afterEach, describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, quickFolder, standingClock, testFolder, textsOf } from "./test-folder.ts";

const dying = fileURLToPath(new URL("append-then-die.ts", import.meta.url));

async function failureOf(operation: Promise<unknown>): Promise<unknown> {
  return operation.then(
    () => "no error",
    (reason: unknown) => reason,
  );
}

describe("a disk that fails", () => {
  it("leaves the handle to go on when a flush fails: the append is unknown, and its key tells what became of it", async () => {
    const path = join(testFolder(), "store.db");
    const { driver, failNextCommit, failNext } = createFaultyDriver();
    const store = createSqliteStore({ path, driver, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    const append = (on: SessionStore): Promise<unknown> => on.append(ref, [say("one")], { idempotencyKey: "k" });
    failNextCommit("SQLITE_IOERR_FSYNC");
    expect(await failureOf(append(store))).toMatchObject({ code: "STORE_IO", outcome: "unknown" });
    // Every process is to know of it.
    expect(existsSync(`${path}.flush-failed`)).toBe(true);
    // Until the key was looked for nobody knows more about it.
    failNext("BEGIN IMMEDIATE", "SQLITE_IOERR_READ");
    expect(await failureOf(append(store))).toMatchObject({ code: "STORE_IO", outcome: "unknown" });
    expect(await append(store)).toMatchObject({ replayed: true });
    expect(existsSync(`${path}.flush-failed`)).toBe(false);
    await store.append(ref, [say("two")]);
    await store.close();
    await using again = createSqliteStore({ path });
    expect(await append(again)).toMatchObject({ replayed: true });
    expect(await textsOf(again, ref)).toEqual(["one", "two"]);
  });

  it("keeps an append with a key from being called not applied where the store cannot be asked", async () => {
    const path = join(testFolder(), "store.db");
    {
      await using store = createSqliteStore({ path });
      const ref = await createSession(store, "a");
      await store.append(ref, [say("one")], { idempotencyKey: "k" });
    }
    for (const code of ["SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_READ", "SQLITE_READONLY", "SQLITE_CORRUPT"]) {
      await using store = createSqliteStore({
        path,
        recover: false,
        driver: () => {
          throw new Database.SqliteError("a fault of the test", code);
        },
      });
      const drafts = [say("one")];
      expect(await failureOf(store.append(refOf("a"), drafts, { idempotencyKey: "k" }))).toMatchObject({
        outcome: "unknown",
      });
      // What has no key has no earlier attempt.
      expect(await failureOf(store.append(refOf("a"), drafts))).toMatchObject({ outcome: "not-applied" });
    }
    // Once it was looked for, more is known.
    await using store = createSqliteStore({ path });
    const expected = { idempotencyKey: "other", expect: { head: "nowhere" } };
    expect(await failureOf(store.append(refOf("a"), [say("one")], expected))).toMatchObject({
      code: "APPEND_CONFLICT",
      outcome: "not-applied",
    });
  });

  it("fails every append of a commit that fails, and none of the next", async () => {
    const { driver, failNextCommit } = createFaultyDriver();
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, driver, clock: standingClock, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    failNextCommit("SQLITE_FULL");
    const settled = await Promise.allSettled([store.append(ref, [say("one")]), store.append(ref, [say("two")])]);
    expect(settled).toMatchObject([
      { reason: { code: "STORE_FULL", outcome: "not-applied", retryable: true } },
      { reason: { code: "STORE_FULL" } },
    ]);
    await store.append(ref, [say("three")]);
    expect(await textsOf(store, ref)).toEqual(["three"]);
  });
});

describe("a damaged file", () => {
  it("is told as STORE_CORRUPT, and what lies elsewhere is still read", async () => {
    const path = join(testFolder(), "store.db");
    const store = createSqliteStore({ path });
    const [damaged, whole] = [await createSession(store, "a"), await createSession(store, "b")];
    await store.append(damaged, [say("x".repeat(100_000))]);
    await store.append(whole, [say("whole")]);
    await store.close();
    const at = readFileSync(path).lastIndexOf(`{"type":"message","id"`);
    expect(at).toBeGreaterThan(8192);
    await flipByte(path, at, 0xff);
    await using again = createSqliteStore({ path });
    expect(await failureOf(textsOf(again, damaged))).toMatchObject({ code: "STORE_CORRUPT" });
    expect(await textsOf(again, whole)).toEqual(["whole"]);
  });

  it("is told as STORE_CORRUPT where an entry is no JSON any more: no codec is to blame", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    const beside = new Database(path);
    beside.exec("UPDATE store_entries SET entry = 'x'");
    beside.close();
    await expect(store.load(ref)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    // What needs no entry goes on.
    await store.append(ref, [say("one")]);
    await expect(store.append(ref, [say("two")], { entry: { label: "x" } })).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      outcome: "not-applied",
    });
    expect(await textsOf(store, ref)).toEqual(["one"]);
  });

  it(
    "fails those appends of a commit that need the damaged page, and none of the others",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const folder = testFolder(quickFolder());
      const path = join(folder, "store.db");
      const names = ["a", "b", "c"];
      {
        await using store = createSqliteStore({ path, searchFill: "on-demand" });
        for (const name of names) {
          const ref = await createSession(store, name);
          const drafts = Array.from({ length: 400 }, (_, each) =>
            say("x", { id: `${name}-${each}-${"i".repeat(40)}` }),
          );
          await store.append(ref, drafts);
        }
      }
      const bytes = readFileSync(path);
      const outcomes = async (page: number, run: (store: SessionStore) => Promise<unknown>[]): Promise<string[]> => {
        const copy = join(testFolder(folder), "store.db");
        const damaged = Buffer.from(bytes).fill(0, page * 8192, (page + 1) * 8192);
        writeFileSync(copy, damaged, { mode: 0o600 });
        const store = createSqliteStore({ path: copy, recover: false, searchFill: "on-demand" });
        const isOpen = await store.list().then(
          () => true,
          () => false,
        );
        const settled = isOpen ? await Promise.allSettled(run(store)) : [];
        // Closing tidies up, and says so when it meets the damage.
        await failureOf(store.close());
        return settled.map((each) => (each.status === "fulfilled" ? "ok" : (each.reason as { code: string }).code));
      };
      const append = (store: SessionStore, name: string): Promise<unknown> =>
        store.append(refOf(name), [say("new", { id: `${name}-new` })]);
      let mixed = 0;
      for (let page = 1; page < bytes.length / 8192; page++) {
        const alone: string[] = [];
        for (const name of names) alone.push(...(await outcomes(page, (store) => [append(store, name)])));
        const together = await outcomes(page, (store) => names.map((name) => append(store, name)));
        expect(together, `page ${page}`).toEqual(alone);
        if (new Set(together).size > 1) mixed++;
      }
      expect(mixed).toBeGreaterThan(0);
    },
  );

  it("whose pages make no sense is refused when they are read, and not written", async () => {
    const path = join(testFolder(), "store.db");
    const store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    for (let index = 0; index < 20; index++) await store.append(ref, [say("x".repeat(5000))]);
    await store.close();
    const bytes = readFileSync(path);
    // The header stays; of every other page the first bytes, which say what it is, are gone.
    for (let at = 8192; at < bytes.byteLength; at += 8192) bytes.fill(0xff, at, at + 64);
    writeFileSync(path, bytes);
    await using again = createSqliteStore({ path });
    expect(await failureOf(textsOf(again, ref))).toMatchObject({ code: "STORE_CORRUPT" });
    expect(await failureOf(again.append(ref, [say("more")]))).toMatchObject({
      code: "STORE_CORRUPT",
      outcome: "not-applied",
    });
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });
});

const mounts: string[] = [];

/** A small file system in memory; null where this user may not mount one. */
function smallDisk(sizeBytes: number): string | null {
  const folder = testFolder();
  try {
    execFileSync("/bin/mount", ["-t", "tmpfs", "-o", `size=${sizeBytes},mode=0700`, "tmpfs", folder], {
      stdio: "ignore",
    });
  } catch {
    return null;
  }
  mounts.push(folder);
  return folder;
}

afterEach(() => {
  for (const folder of mounts.splice(0)) execFileSync("/bin/umount", [folder]);
});

describe.skipIf(process.platform !== "linux" || process.getuid?.() !== 0)("a small disk (as root only)", () => {
  it(
    "says STORE_FULL when it is full, keeps what was acknowledged, and goes on when there is space",
    { tags: ["slow"] },
    async (context) => {
      const folder = smallDisk(1024 * 1024);
      if (folder === null) return context.skip("this system does not let root mount a file system");
      const path = join(folder, "store.db");
      await using store = createSqliteStore({ path });
      const ref = await createSession(store, "a");
      let acknowledged = 0;
      let failure: unknown = null;
      while (failure === null && acknowledged < 1000) {
        failure = await store.append(ref, [say(`n${acknowledged} ${"x".repeat(20_000)}`)]).then(
          () => null,
          (reason: unknown) => reason,
        );
        if (failure === null) acknowledged++;
      }
      expect(failure).toMatchObject({ code: "STORE_FULL", outcome: "not-applied", retryable: true });
      expect(await textsOf(store, ref)).toHaveLength(acknowledged);
      // A handle that closes leaves the log, in which everything stands, to whoever opens the file next.
      const another = createSqliteStore({ path, searchFill: "on-demand" });
      expect(await failureOf(another.append(ref, [say("y".repeat(20_000))]))).toMatchObject({ code: "STORE_FULL" });
      await another.close();
      execFileSync("/bin/mount", ["-o", "remount,size=16777216", folder]);
      await store.append(ref, [say("after")]);
      expect((await textsOf(store, ref)).at(-1)).toBe("after");
      expect((await store.load(ref))?.head.lastSeq).toBe(acknowledged + 1);
    },
  );

  it("says STORE_FULL when not even the pages that connections share have room, and opens when there is space", async (context) => {
    const folder = smallDisk(1024 * 1024);
    if (folder === null) return context.skip("this system does not let root mount a file system");
    const path = join(folder, "store.db");
    {
      await using store = createSqliteStore({ path });
      await createSession(store, "a");
    }
    try {
      writeFileSync(join(folder, "fill"), "x".repeat(1024 * 1024));
    } catch {
      // As much of it as there was room for.
    }
    await using again = createSqliteStore({ path });
    expect(await failureOf(again.list())).toMatchObject({ code: "STORE_FULL", retryable: true });
    rmSync(join(folder, "fill"));
    expect((await again.list()).sessions).toHaveLength(1);
  });

  it("leaves no file behind where not even an empty store has room", async (context) => {
    const folder = smallDisk(64 * 1024);
    if (folder === null) return context.skip("this system does not let root mount a file system");
    const path = join(folder, "store.db");
    await using store = createSqliteStore({ path });
    const saved = (): Promise<unknown> => failureOf(createSession(store, "a"));
    expect(await saved()).toMatchObject({ code: "STORE_FULL", outcome: "not-applied", retryable: true });
    expect(readdirSync(folder)).toEqual([]);
    // An empty file that somebody else has put there stays.
    writeFileSync(path, "");
    expect(await saved()).toMatchObject({ code: "STORE_FULL" });
    expect(readdirSync(folder)).toEqual(["store.db"]);
    execFileSync("/bin/mount", ["-o", "remount,size=16777216", folder]);
    await createSession(store, "a");
    expect((await store.list()).sessions).toHaveLength(1);
  });

  it("says STORE_READ_ONLY on a file system that takes no writes, and leaves nothing behind", async (context) => {
    const folder = smallDisk(4 * 1024 * 1024);
    if (folder === null) return context.skip("this system does not let root mount a file system");
    const path = join(folder, "store.db");
    const store = createSqliteStore({ path });
    await createSession(store, "a");
    await store.close();
    execFileSync("/bin/mount", ["-o", "remount,ro", folder]);
    await using again = createSqliteStore({ path });
    expect(await failureOf(again.append(refOf("a"), [say("one")]))).toMatchObject({
      code: "STORE_READ_ONLY",
      outcome: "not-applied",
    });
    await using fresh = createSqliteStore({ path: join(folder, "other.db") });
    expect(await failureOf(fresh.list())).toMatchObject({ code: "STORE_READ_ONLY" });
    await using deep = createSqliteStore({ path: join(folder, "new", "folders", "other.db") });
    expect(await failureOf(deep.list())).toMatchObject({ code: "STORE_READ_ONLY" });
    // No folder can be made there, and the system says of each that it is not there.
    await using nowhere = createSqliteStore({ path: "/proc/new/folders/other.db" });
    expect(await failureOf(nowhere.list())).toMatchObject({ code: "STORE_IO" });
    expect(readdirSync(folder)).toEqual(["store.db"]);
  });

  it.for(["no log", "a log and its index", "a log"])(
    "is read on a file system that takes no writes, with %s",
    { tags: ["slow"] },
    async (left, context) => {
      const folder = smallDisk(16 * 1024 * 1024);
      if (folder === null) return context.skip("this system does not let root mount a file system");
      const path = join(folder, "store.db");
      const store = createSqliteStore({ path });
      const ref = await createSession(store, "a");
      await store.append(ref, [say("one"), say("two")]);
      await store.close();
      const hasLog = left !== "no log";
      if (hasLog) spawnSync(process.execPath, ["--conditions=@throughline/source", dying, path, "3"]);
      if (left === "a log") rmSync(`${path}-shm`);
      execFileSync("/bin/mount", ["-o", "remount,ro", folder]);
      const before = readdirSync(folder);
      expect(before.includes("store.db-wal")).toBe(hasLog);
      const copies = (): readonly string[] =>
        readdirSync(tmpdir()).filter((name) => name.startsWith("throughline-read-"));
      const earlier = copies();
      await using reader = createSqliteStore({ path });
      const texts = await textsOf(reader, ref);
      expect(texts.length).toBe(hasLog ? 5 : 2);
      expect((await reader.list()).sessions.map(({ ref: { key } }) => key)).toEqual([ref.key]);
      expect(await Array.fromAsync(reader.search?.search({ text: "two" }) ?? [])).toHaveLength(1);
      expect(await Array.fromAsync(reader.maintenance?.verify({ full: true }) ?? [])).toEqual([]);
      expect(copies()).toEqual(earlier);
      const backup = join(testFolder(), "rescued.db");
      await reader.maintenance?.backup(backup);
      await using rescued = createSqliteStore({ path: backup });
      expect(await textsOf(rescued, ref)).toEqual(texts);
      if (left !== "a log and its index") {
        const closing = createSqliteStore({ path });
        await closing.list();
        const late = failureOf(closing.maintenance?.backup(`${backup}.late`) ?? Promise.resolve());
        await closing.load(ref);
        await closing.close();
        expect(await late).toMatchObject({ code: "STORE_CLOSED", outcome: "not-applied" });
      }
      for (const write of [
        reader.append(ref, [say("three")]),
        reader.save(ref, { sessionId: "session-a" }, { ifRevision: 1 }),
        reader.remove(ref, { purge: true }),
      ])
        expect(await failureOf(write)).toMatchObject({ code: "STORE_READ_ONLY", outcome: "not-applied" });
      expect(await textsOf(reader, ref)).toEqual(texts);
      expect(readdirSync(folder)).toEqual(before);
      // With the index of its log SQLite reads the store in its place, and what is written meanwhile.
      if (left === "a log and its index") return;
      execFileSync("/bin/mount", ["-o", "remount,rw", folder]);
      await using writer = createSqliteStore({ path });
      await writer.append(ref, [say("written meanwhile")]);
      expect(await failureOf(textsOf(reader, ref))).toMatchObject({
        code: "STORE_READ_ONLY",
        remedy: /Open the store again/,
      });
    },
  );

  it("gives a backup back that lies on one that takes no writes", async (context) => {
    const folder = smallDisk(4 * 1024 * 1024);
    if (folder === null) return context.skip("this system does not let root mount a file system");
    const path = join(testFolder(), "store.db");
    const store = createSqliteStore({ path });
    await store.append(await createSession(store, "a"), [say("one")]);
    const backupPath = join(folder, "one.backup");
    await store.maintenance?.backup(backupPath);
    await store.append(refOf("a"), [say("two")]);
    await store.close();
    // A backup of an earlier build says that it has a log.
    const earlier = new Database(backupPath);
    earlier.pragma("journal_mode = WAL");
    earlier.close();
    execFileSync("/bin/mount", ["-o", "remount,ro", folder]);
    restoreSqliteBackup({ backupPath, path, keptAs: "kept" });
    await using again = createSqliteStore({ path });
    expect(await textsOf(again, refOf("a"))).toEqual(["one"]);
  });
});
