import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { hasErrorCode, type SessionStore } from "@throughline/core";
import { startHolder } from "@throughline/store-conformance/internal";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const scriptPath = join(import.meta.dirname, "hold-agent-lock.ts");
const main = { namespace: "", agentId: "main" };
const patient = { timeoutMs: 20_000, pollIntervalMs: 10 };

function newPath(): string {
  return join(testFolder(), "store.db");
}

function lock(store: SessionStore): NonNullable<SessionStore["exclusively"]> {
  if (store.exclusively === undefined) throw new Error("the SQLite store has the lock");
  return store.exclusively.bind(store);
}

function lockFiles(path: string): readonly string[] {
  return readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.lock-`));
}

describe("the lock of an agent", () => {
  it("is free as soon as the process that held it is killed", { tags: ["slow"] }, async () => {
    const path = newPath();
    await using store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    const rounds = testSize({ short: 3, long: 50 });
    for (let round = 0; round < rounds; round++) {
      const holder = await startHolder({ scriptPath, args: [path, "", "main"] });
      const refused = lock(store)(main, () => Promise.resolve(), { timeoutMs: 30, pollIntervalMs: 5 });
      await expect(refused).rejects.toMatchObject({ code: "STORE_LOCKED", outcome: "not-applied" });
      if (process.platform === "linux") await expect(refused).rejects.toMatchObject({ details: { pid: holder.pid } });
      // The database itself is free.
      await store.append(ref, [{ type: "message", message: { role: "user", content: `round ${round}` } }]);
      let enteredMs = 0;
      const waiting = lock(store)(main, async () => void (enteredMs = performance.now()), patient);
      await sleep(30);
      expect(enteredMs).toBe(0);
      await holder.kill();
      const killedMs = performance.now();
      await waiting;
      // A lease would last for 30 s.
      expect(enteredMs - killedMs).toBeLessThan(20_000);
    }
    expect(await textsOf(store, ref)).toHaveLength(rounds);
  });

  it("leaves no file behind, and while it is held only its owner may read the one it has", async () => {
    const path = newPath();
    await using store = createSqliteStore({ path });
    await lock(store)(
      main,
      async () => {
        const files = lockFiles(path);
        expect(files).toHaveLength(1);
        expect(statSync(join(dirname(path), files[0] ?? "")).mode & 0o777).toBe(0o600);
      },
      patient,
    );
    expect(lockFiles(path)).toEqual([]);
  });

  it(
    "is taken by one of many at a time, in several processes, also when its file is what a killed one left",
    { tags: ["slow"] },
    async () => {
      const path = newPath();
      await using store = createSqliteStore({ path });
      await using other = createSqliteStore({ path });
      const holder = await startHolder({ scriptPath, args: [path, "", "main"] });
      await holder.kill();
      expect(lockFiles(path)).toHaveLength(1);
      let [running, most, done] = [0, 0, 0];
      const work = async (): Promise<void> => {
        running += 1;
        most = Math.max(most, running);
        await sleep(5);
        running -= 1;
        done += 1;
      };
      const all = Array.from({ length: 12 }, (_each, index) =>
        lock(index % 2 === 0 ? store : other)(main, work, patient),
      );
      await Promise.all(all);
      expect([most, done, lockFiles(path)]).toEqual([1, 12, []]);
    },
  );

  it("is not taken of a store that is not there, or that was closed", async () => {
    const path = newPath();
    const store = createSqliteStore({ path, create: false });
    await expect(lock(store)(main, () => Promise.resolve(), patient)).rejects.toMatchObject({
      code: "STORE_NOT_FOUND",
    });
    await store.close();
    const failure = await lock(store)(main, () => Promise.resolve(), patient).catch((error: unknown) => error);
    expect(hasErrorCode(failure, "STORE_CLOSED")).toBe(true);
    expect(existsSync(path)).toBe(false);
    rmSync(dirname(path), { recursive: true });
  });

  it("is kept for work that nothing can settle any more, whatever is collected", { tags: ["slow"] }, async () => {
    const path = newPath();
    const holder = await startHolder({
      scriptPath,
      args: [path, "", "main"],
      execArgv: [...process.execArgv, "--expose-gc"],
    });
    await using store = createSqliteStore({ path });
    await sleep(1500);
    const refused = lock(store)(main, () => Promise.resolve(), { timeoutMs: 0, pollIntervalMs: 5 });
    await expect(refused).rejects.toMatchObject({ code: "STORE_LOCKED" });
    await holder.kill();
  });
});
