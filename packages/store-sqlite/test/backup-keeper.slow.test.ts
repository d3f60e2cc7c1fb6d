import { existsSync, readdirSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import type { Clock, SessionEvent, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

function backupsIn(path: string): string[] {
  return readdirSync(dirname(path))
    .filter((name) => name.endsWith(".auto.backup"))
    .toSorted();
}

/** Appends until there are so many backups, or for ten seconds. */
async function appendUntil(store: SessionStore, path: string, count: number, skip = 0): Promise<void> {
  for (let tries = 0; tries < 200 && backupsIn(path).length < count + skip; tries++) {
    await store.append(refOf("a"), [say("more")]);
    await wait(50);
  }
}

describe("backups a store makes by itself", () => {
  it("are made by one of those who write, are whole, and are not made again before their time", async () => {
    const path = join(testFolder(), "store.db");
    const backups = { everyMs: 3_600_000 };
    await using one = createSqliteStore({ path, backups });
    await using other = createSqliteStore({ path, backups });
    await createSession(one, "a");
    await Promise.all([appendUntil(one, path, 1), appendUntil(other, path, 1)]);
    await wait(700);
    await Promise.all([one.append(refOf("a"), [say("x")]), other.append(refOf("a"), [say("y")])]);
    await wait(700);
    const [name, ...others] = backupsIn(path);
    expect(others).toEqual([]);
    await using copy = createSqliteStore({ path: join(dirname(path), name ?? ""), create: false });
    expect((await textsOf(copy, refOf("a"))).length).toBeGreaterThan(0);
    const findings: unknown[] = [];
    for await (const each of copy.maintenance?.verify({ full: true }) ?? []) findings.push(each);
    expect(findings).toEqual([]);
    expect(existsSync(`${path}.backup-under-way`)).toBe(false);
  });

  it("are not put off until a time at which the clock once stood", async () => {
    const path = join(testFolder(), "store.db");
    let aheadMs = 86_400_000;
    const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
    await using store = createSqliteStore({ path, clock, backups: { everyMs: 3_600_000 } });
    await createSession(store, "a");
    await appendUntil(store, path, 1);
    const tomorrow = new Date(systemClock.nowMs() + aheadMs);
    utimesSync(join(dirname(path), backupsIn(path)[0] ?? ""), tomorrow, tomorrow);
    aheadMs = 0;
    await appendUntil(store, path, 2);
    expect(backupsIn(path)).toHaveLength(2);
  });

  it("keep the newest few, and never touch those somebody else made", { timeout: 30_000 }, async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, backups: { everyMs: 1, keep: 2 } });
    await createSession(store, "a");
    await store.maintenance?.backup(`${path}.mine.backup`);
    await appendUntil(store, path, 2);
    const [first] = backupsIn(path);
    utimesSync(join(dirname(path), first ?? ""), 1, 1);
    for (let tries = 0; tries < 100 && backupsIn(path)[0] === first; tries++) {
      await store.append(refOf("a"), [say("more")]);
      await wait(50);
    }
    expect(backupsIn(path)).toHaveLength(2);
    expect(backupsIn(path)).not.toContain(first);
    expect(existsSync(`${path}.mine.backup`)).toBe(true);
  });

  it("of a damaged store are refused, said, and push out no good one", async () => {
    const path = join(testFolder(), "store.db");
    {
      await using store = createSqliteStore({ path, backups: { everyMs: 1, keep: 1 } });
      await createSession(store, "a");
      await appendUntil(store, path, 1);
    }
    const before = backupsIn(path);
    expect(before).toHaveLength(1);
    const database = new Database(path);
    // The pages of an index nobody refers to any more: what a lost write leaves behind.
    database.unsafeMode();
    database.pragma("writable_schema = ON");
    database.exec("DELETE FROM sqlite_schema WHERE name = 'store_records_text_payload'");
    database.close();
    const events: SessionEvent[] = [];
    await using store = createSqliteStore({
      path,
      backups: { everyMs: 1, keep: 1 },
      onEvent: (each) => events.push(each),
    });
    const failed = (): SessionEvent | undefined =>
      events.find((event) => event.name === "finding" && event.finding.code === "BACKUP_FAILED");
    for (let tries = 0; tries < 100 && failed() === undefined; tries++) {
      await store.append(refOf("a"), [say("more")]);
      await wait(50);
    }
    expect(failed()).toMatchObject({ finding: { severity: "warning", path } });
    expect(backupsIn(path)).toEqual(before);
  });
});
