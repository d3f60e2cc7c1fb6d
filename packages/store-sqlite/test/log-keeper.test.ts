import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const pageBytes = 8192 + 24;

/** Enough for the log to be worth writing back. */
const large = "x".repeat(700_000);

describe("the log", () => {
  it(
    "is written back beside the commits, never in one, and stays short while turns come without a pause",
    { tags: ["slow"] },
    async () => {
      const path = join(testFolder(), "store.db");
      const { driver, statements } = createFaultyDriver();
      await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
      const ref = await createSession(store, "a");
      const text = "x".repeat(8000);
      let longest = 0;
      for (let each = 0; each < 3000; each++) {
        await store.append(ref, [say(text)], { durability: "process" });
        if (each % 50 === 0) longest = Math.max(longest, statSync(`${path}-wal`).size);
      }
      expect(longest).toBeLessThan(1500 * pageBytes);
      const ran = statements();
      const checkpoints = ran.flatMap((sql, index) => (/wal_checkpoint\((?!NOOP)/.test(sql) ? [index] : []));
      expect(checkpoints.length).toBeGreaterThanOrEqual(3);
      for (const at of checkpoints) {
        const lastOf = (text: string): number => ran.lastIndexOf(text, at);
        expect(lastOf("COMMIT")).toBeGreaterThan(lastOf("BEGIN IMMEDIATE"));
      }
      // SQLite's own checkpoints, which would be made inside a commit, are off.
      expect(ran.filter((sql) => sql.startsWith("COMMIT")).length).toBeGreaterThanOrEqual(3000);
    },
  );

  it("is written back when it is quiet", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say(large)]);
    const other = new Database(path, { readonly: true });
    const state = (): unknown => other.prepare("PRAGMA wal_checkpoint(NOOP)").raw().get();
    for (let tries = 0; tries < 50; tries++) {
      const [, pages, written] = state() as number[];
      if (pages === written) break;
      await wait(50);
    }
    const [, pages, written] = state() as number[];
    expect(pages).toBe(written);
    expect(pages).toBeGreaterThan(0);
    other.close();
  });

  it("that cannot be written back because the disk is full keeps everything", { tags: ["slow"] }, async () => {
    const path = join(testFolder(), "store.db");
    const { driver, failNext } = createFaultyDriver();
    await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    failNext("PRAGMA wal_checkpoint(PASSIVE)", "SQLITE_FULL");
    await store.append(ref, [say(large)]);
    await wait(250);
    await store.append(ref, [say("two")]);
    expect(await textsOf(store, ref)).toEqual([large, "two"]);
  });

  it(
    "whose flush fails when it is written back is written back before the next append is acknowledged",
    { tags: ["slow"] },
    async () => {
      const path = join(testFolder(), "store.db");
      const { driver, failNext } = createFaultyDriver();
      const store = createSqliteStore({ path, driver, searchFill: "on-demand" });
      const ref = await createSession(store, "a");
      failNext("PRAGMA wal_checkpoint(PASSIVE)", "SQLITE_IOERR_FSYNC");
      await store.append(ref, [say(large)]);
      await wait(250);
      expect(existsSync(`${path}.flush-failed`)).toBe(true);
      await store.append(ref, [say("two")]);
      expect(existsSync(`${path}.flush-failed`)).toBe(false);
      // It was begun anew: the one record alone is longer than what stands in it now.
      const log = readFileSync(`${path}-wal`);
      expect(log.includes("two") && !log.includes(large)).toBe(true);
      await store.close();
      await using again = createSqliteStore({ path });
      expect(await textsOf(again, ref)).toEqual([large, "two"]);
    },
  );
});

describe("what a connection knows of sessions", () => {
  it("spares the next append every look at the file but one: whether somebody else has written", async () => {
    const path = join(testFolder(), "store.db");
    const { driver, statements } = createFaultyDriver();
    await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one")]);
    const from = statements().length;
    await store.append(ref, [say("two")]);
    const ran = statements().slice(from);
    expect(ran.map((sql) => sql.split(" ").slice(0, 2).join(" ")).filter((sql) => !sql.includes("wal_"))).toEqual([
      "BEGIN IMMEDIATE",
      "PRAGMA data_version",
      "INSERT INTO",
      "UPDATE store_sessions",
      "COMMIT",
    ]);
  });

  it("is forgotten as soon as somebody else has written", async () => {
    const path = join(testFolder(), "store.db");
    await using one = createSqliteStore({ path, searchFill: "on-demand" });
    await using other = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(one, "a");
    const said: string[] = [];
    for (let each = 0; each < 30; each++) {
      // By turns, and twice in a row, with everything in between that changes a session's row.
      const store = each % 3 === 0 ? one : other;
      const keyed = each % 5 === 0 ? { idempotencyKey: `k${each}` } : {};
      const entry = each % 7 === 0 ? { entry: { model: `m${each}` } } : {};
      const draft = each % 4 === 0 ? say(`n${each}`, { id: `given-${each}` }) : say(`n${each}`);
      const { head } = await store.append(ref, [draft], { ...keyed, ...entry });
      expect(head.lastSeq).toBe(each + 1);
      said.push(`n${each}`);
    }
    expect(await textsOf(one, ref)).toEqual(said);
    expect((await other.load(ref))?.messageCount).toBe(30);
    await one.move(ref, { kind: "rename", key: "agent:main:b" });
    await expect(one.append(ref, [say("gone")])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(other.append(ref, [say("gone")])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await other.append(refOf("b"), [say("here")]);
    expect((await one.load(refOf("b")))?.head.lastSeq).toBe(31);
  });

  it("is what stands in the file after a refusal in the middle of a group, and after a commit that failed", async () => {
    const path = join(testFolder(), "store.db");
    const { driver, failNext } = createFaultyDriver();
    await using store = createSqliteStore({ path, driver, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one")]);
    const settled = await Promise.allSettled([
      store.append(ref, [say("two")]),
      store.append(ref, [say("never")], { expect: { head: "another" } }),
      store.append(ref, [say("three")]),
    ]);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    failNext("COMMIT", "SQLITE_FULL");
    await expect(store.append(ref, [say("lost")])).rejects.toMatchObject({ code: "STORE_FULL" });
    const { head } = await store.append(ref, [say("four")]);
    expect(head.lastSeq).toBe(4);
    expect(await textsOf(store, ref)).toEqual(["one", "two", "three", "four"]);
  });
});
