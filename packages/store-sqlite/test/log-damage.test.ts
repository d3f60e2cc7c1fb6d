import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { Finding, SessionStore } from "@throughline/core";
import { flipByte } from "@throughline/store-conformance";
import { createSqliteStore, restoreSqliteBackup } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { findLogDamage, type LogDamage } from "../src/log-damage.ts";
import { refOf } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const frameBytes = 8192 + 24;
const frameAt = (frame: number): number => 32 + (frame - 1) * frameBytes;

/** The files of a store whose process was killed after the given number of acknowledged appends. */
function killedAfter(appends: number): string {
  const path = join(testFolder(), "store.db");
  const script = fileURLToPath(new URL("./append-then-die.ts", import.meta.url));
  const child = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, String(appends)], {
    encoding: "utf8",
  });
  expect([child.signal, child.stdout.trim().split("\n").length, child.stderr]).toEqual(["SIGKILL", appends, ""]);
  return path;
}

function open(path: string): { readonly store: SessionStore; readonly told: Finding[] } {
  const told: Finding[] = [];
  const onEvent: Parameters<typeof createSqliteStore>[0]["onEvent"] = (event) => {
    if (event.name === "finding") told.push(event.finding);
  };
  return { store: createSqliteStore({ path, create: false, searchFill: "on-demand", onEvent }), told };
}

function damageOf(log: Buffer): LogDamage | null {
  return findLogDamage((buffer, at) => log.copy(buffer, 0, at, at + buffer.byteLength), log.length, 8192);
}

async function verified(store: SessionStore): Promise<string[]> {
  const codes: string[] = [];
  for await (const { code } of store.maintenance?.verify({ full: true }) ?? []) codes.push(code);
  return codes;
}

describe("a bit that was flipped in the log a killed process has left", () => {
  it.each([
    ["with the index of the log, as kill -9 leaves it", false],
    ["without it", true],
  ])("is told with what lies behind it, and the log is kept: %s", { tags: ["slow"] }, async (_what, hasNoIndex) => {
    const path = killedAfter(30);
    const log = `${path}-wal`;
    const frames = Math.floor((statSync(log).size - 32) / frameBytes);
    const damaged = Math.floor(frames / 3);
    await flipByte(log, frameAt(damaged) + 3000, 0x01);
    if (hasNoIndex) rmSync(`${path}-shm`);
    const before = readFileSync(log);
    const { store, told } = open(path);
    const texts = await textsOf(store, refOf("a"));
    expect(texts.length).toBeGreaterThan(0);
    expect(texts.length).toBeLessThan(30);
    expect(told).toMatchObject([{ code: "LOG_DAMAGED", severity: "error" }]);
    const [, behind, commits, bytes] =
      /(\d+) frames .* (\d+) commits \((\d+) bytes\)/.exec(told[0]?.message ?? "") ?? [];
    expect([Number(behind), Number(bytes)]).toEqual([frames - damaged, (frames - damaged) * frameBytes]);
    // Each append is one commit; the one that holds the damaged frame has its end behind it.
    expect(30 - texts.length - Number(commits)).toBe(0);
    const kept = told[0]?.path ?? "";
    expect([dirname(kept), readFileSync(kept).equals(before), statSync(kept).mode & 0o777]).toEqual([
      dirname(path),
      true,
      0o600,
    ]);
    // The store goes on without it, and says so as long as the log lies there.
    await store.append(refOf("a"), [{ type: "message", message: { role: "user", content: "after" } }]);
    expect(await verified(store)).toEqual(["LOG_DAMAGED"]);
    await store.close();
    rmSync(kept);
    const again = open(path);
    expect([await verified(again.store), again.told]).toEqual([[], []]);
    expect(await textsOf(again.store, refOf("a"))).toEqual([...texts, "after"]);
    await again.store.close();
  });

  it("is told once, also when whoever opened it is killed as well", { tags: ["slow"] }, async () => {
    const path = killedAfter(12);
    await flipByte(`${path}-wal`, frameAt(6) + 100, 0x01);
    const script = fileURLToPath(new URL("./append-then-die.ts", import.meta.url));
    const child = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, "1"]);
    expect(child.signal).toBe("SIGKILL");
    expect(readdirSync(dirname(path)).filter((name) => name.includes("damaged-log"))).toHaveLength(1);
    const { store, told } = open(path);
    await store.load(refOf("a"));
    expect(told).toEqual([]);
    await store.close();
  });

  it("keeps the log also when the store is not opened but replaced by a backup", { tags: ["slow"] }, async () => {
    const path = killedAfter(12);
    const backupPath = join(testFolder(), "empty.backup");
    {
      const other = createSqliteStore({ path: join(testFolder(), "other.db") });
      await createSession(other, "b");
      await other.maintenance?.backup(backupPath);
      await other.close();
    }
    await flipByte(`${path}-wal`, frameAt(6) + 100, 0x01);
    const before = readFileSync(`${path}-wal`);
    restoreSqliteBackup({ backupPath, path, keptAs: "kept" });
    const [kept = ""] = readdirSync(dirname(path)).filter((name) => name.includes("damaged-log"));
    expect(readFileSync(join(dirname(path), kept)).equals(before)).toBe(true);
  });
});

describe("a log that is as a crash leaves it", () => {
  it(
    "is none that is damaged: cut anywhere, torn at its end, begun anew over an earlier round",
    { tags: ["slow"], timeout: 60_000 },
    () => {
      const path = join(testFolder(), "log.db");
      const database = new Database(path);
      for (const setting of ["page_size = 8192", "journal_mode = WAL", "wal_autocheckpoint = 0"])
        database.pragma(setting);
      database.exec("CREATE TABLE rows (text TEXT)");
      const insert = database.prepare("INSERT INTO rows VALUES (?)");
      const rounds: Buffer[] = [];
      for (let round = 0; round < 6; round++) {
        // Each round is shorter than the one before, so that frames of that one stand behind its own.
        for (let each = 0; each < 12 - round * 2; each++) insert.run("x".repeat(each * 3000));
        rounds.push(readFileSync(`${path}-wal`));
        database.pragma("wal_checkpoint(RESTART)");
      }
      database.close();
      for (const [round, log] of rounds.entries()) {
        expect(damageOf(log), `round ${round}`).toBeNull();
        for (let cut = 0; cut < log.length; cut += testSize({ short: 3333, long: 1111 })) {
          expect(damageOf(log.subarray(0, cut)), `round ${round} cut at ${cut}`).toBeNull();
          // A file system may give a file its length before its content.
          const torn = Buffer.from(log);
          torn.fill(0, cut);
          expect(damageOf(torn), `round ${round} zeros from ${cut}`).toBeNull();
        }
      }
      const [, second = Buffer.alloc(0)] = rounds;
      expect(rounds.some((log, round) => round > 0 && log.length === rounds[0]?.length)).toBe(true);
      // The same logs with a bit less: found wherever a whole commit of that round lies behind it.
      for (const at of [frameAt(2) + 1, frameAt(2) + 9, frameAt(2) + 18, frameAt(2) + 500, 3, 10, 17]) {
        const flipped = Buffer.from(second);
        flipped[at] = (flipped[at] ?? 0) ^ 0x10;
        expect(damageOf(flipped), `flipped at ${at}`).toMatchObject({ damagedFrame: at < 32 ? 0 : 2 });
        expect(damageOf(flipped)?.commitsBehind).toBeGreaterThan(0);
      }
    },
  );

  it("is none that is damaged where an unfinished transaction wrote over its own pages", { tags: ["slow"] }, () => {
    const path = join(testFolder(), "log.db");
    const program = `
      const database = new (require("better-sqlite3"))(${JSON.stringify(path)});
      for (const each of ["page_size = 8192", "journal_mode = WAL", "wal_autocheckpoint = 0", "cache_size = 10"]) database.pragma(each);
      database.exec("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)");
      const insert = database.prepare("INSERT INTO rows VALUES (?, ?)");
      for (let each = 0; each < 100; each++) insert.run(each, "x".repeat(5000));
      database.exec("BEGIN");
      const update = database.prepare("UPDATE rows SET text = ? WHERE id = ?");
      for (let round = 0; round < 3; round++) for (let each = 0; each < 100; each++) update.run(String(round).repeat(5000), each);
      process.kill(process.pid, "SIGKILL");`;
    const child = spawnSync(process.execPath, ["-e", program], { cwd: join(import.meta.dirname, "..") });
    expect([child.signal, String(child.stderr)]).toEqual(["SIGKILL", ""]);
    const log = readFileSync(`${path}-wal`);
    // What was acknowledged takes a hundred commits of some frames; the transaction stands behind it.
    expect(log.length).toBeGreaterThan(frameAt(300));
    expect(damageOf(log)).toBeNull();
  });

  it("is opened without a word, and nothing is kept", { tags: ["slow"] }, async () => {
    const path = killedAfter(12);
    for (const cut of [0, 1, 4000]) {
      const copy = join(testFolder(), "store.db");
      cpSync(path, copy);
      cpSync(`${path}-wal`, `${copy}-wal`);
      truncateSync(`${copy}-wal`, Math.floor(statSync(`${path}-wal`).size / 2) - cut);
      const { store, told } = open(copy);
      expect((await textsOf(store, refOf("a"))).length).toBeGreaterThan(2);
      await store.close();
      expect([told, readdirSync(dirname(copy))]).toEqual([[], ["store.db"]]);
    }
  });

  it("is none of anybody's business in another program's database, and where it is no log at all", async () => {
    const path = join(testFolder(), "store.db");
    const script = `
      const database = new (require("better-sqlite3"))(${JSON.stringify(path)});
      database.pragma("journal_mode = WAL");
      database.exec("CREATE TABLE theirs (a)");
      for (let each = 0; each < 20; each++) database.prepare("INSERT INTO theirs VALUES (?)").run("x".repeat(3000));
      process.kill(process.pid, "SIGKILL");`;
    spawnSync(process.execPath, ["-e", script], { cwd: join(import.meta.dirname, "..") });
    await flipByte(`${path}-wal`, 32 + 2 * (4096 + 24) + 100, 0x01);
    const { store } = open(path);
    await expect(store.list()).rejects.toMatchObject({ code: "STORE_FOREIGN" });
    await store.close();
    expect(readdirSync(dirname(path)).some((name) => name.includes("damaged-log"))).toBe(false);
    expect(damageOf(Buffer.alloc(200_000, "no log at all "))).toBeNull();
    expect(damageOf(Buffer.alloc(200_000))).toBeNull();
  });
});
