import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import Database from "better-sqlite3";
import { systemClock } from "@throughline/core/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { expect, it, vi } from "vitest";
import { say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const rounds = 40;

it("a write that waits for the lock asks a few times, for a fraction of a millisecond, and then lets the loop go on", async () => {
  const path = join(testFolder(), "store.db");
  const { driver, before } = createFaultyDriver();
  const attempts: number[] = [];
  let isHeld = false;
  const holder = new Database(path);
  const sleep = async (): Promise<void> => {
    attempts.push(0);
    if (attempts.length > rounds) holder.exec("ROLLBACK");
    await nextTurn();
  };
  await using store = createSqliteStore({ path, driver, clock: { ...systemClock, sleep }, searchFill: "on-demand" });
  const ref = await createSession(store, "a");
  before((sql) => {
    if (isHeld && sql === "BEGIN IMMEDIATE") attempts[attempts.length - 1]! += 1;
  });
  using naps = vi.spyOn(Atomics, "wait");
  holder.exec("BEGIN IMMEDIATE");
  isHeld = true;
  attempts.push(0);
  await store.append(ref, [say("x")]);
  holder.close();
  expect(attempts.length).toBeGreaterThan(rounds);
  expect(Math.max(...attempts)).toBeLessThanOrEqual(6);
  const nappedMs = naps.mock.calls.reduce((sum, [, , , milliseconds = Infinity]) => sum + milliseconds, 0);
  expect(nappedMs / attempts.length).toBeLessThan(0.5);
  expect(await textsOf(store, ref)).toEqual(["x"]);
});
