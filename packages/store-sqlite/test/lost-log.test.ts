import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Finding } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

/** The files of a store whose process was killed after the given number of acknowledged appends. */
function killedAfter(appends: number): string {
  const path = join(testFolder(), "store.db");
  const script = fileURLToPath(new URL("./append-then-die.ts", import.meta.url));
  const child = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, String(appends)], {
    encoding: "utf8",
  });
  expect([child.signal, child.stdout.trim().split("\n").length]).toEqual(["SIGKILL", appends]);
  return path;
}

/** The findings when the store is opened, and those of verify afterwards. */
async function found(path: string): Promise<{ readonly told: Finding[]; readonly verified: Finding[] }> {
  const told: Finding[] = [];
  await using store = createSqliteStore({
    path,
    searchFill: "on-demand",
    onEvent: (event) => {
      if (event.name === "finding") told.push(event.finding);
    },
  });
  await store.list();
  const verified = await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? []);
  return { told, verified };
}

const proofs = (path: string): string[] =>
  readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}.lost-log-`));

describe("a log that was taken away after its writer was killed", () => {
  it.each([
    ["deleted", (log: string) => rmSync(log)],
    ["emptied", (log: string) => truncateSync(log, 0)],
    ["cut", (log: string) => truncateSync(log, Math.floor(statSync(log).size / 2))],
  ])(
    "is told when the store is opened, and by verify until its proof is removed: %s",
    { tags: ["slow"] },
    async (_how, take) => {
      const path = killedAfter(30);
      take(`${path}-wal`);
      const first = await found(path);
      expect(first.told).toMatchObject([{ code: "LOG_MISSING", severity: "error" }]);
      expect(first.told[0]?.message).toMatch(/held \d+ pages of commits that were not in the database yet/);
      expect(proofs(path).length).toBe(1);
      for (let again = 0; again < 2; again++) {
        const { told, verified } = await found(path);
        expect(told).toEqual([]);
        expect(verified).toMatchObject([{ code: "LOG_MISSING", message: first.told[0]?.message }]);
      }
      for (const name of proofs(path)) rmSync(join(dirname(path), name));
      expect(await found(path)).toEqual({ told: [], verified: [] });
    },
  );

  it("is nothing where the log is there, was written back, or belongs to a process that goes on", async () => {
    const path = killedAfter(30);
    expect(await found(path)).toEqual({ told: [], verified: [] });
    await using writer = createSqliteStore({ path, searchFill: "on-demand" });
    await writer.append(refOf("a"), [say("one more")]);
    expect(existsSync(`${path}-wal`)).toBe(true);
    expect(await found(path)).toEqual({ told: [], verified: [] });
    // A copy of the file alone, as made by whoever knows of no log, has none to be missed.
    const copy = join(testFolder(), "copy.db");
    copyFileSync(path, copy);
    expect((await found(copy)).told).toEqual([]);
    expect(proofs(path)).toEqual([]);
  });
});

describe("a log that was taken away with its index", () => {
  it("is told by a full check where a backup beside the store has more", async () => {
    const path = killedAfter(30);
    {
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      await store.append(refOf("a"), [say("one more")]);
      await store.close();
    }
    const before = join(testFolder(), "before.db");
    copyFileSync(path, before);
    {
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      await store.append(refOf("a"), [say("and another"), say("and the last")]);
      await store.maintenance?.backup(`${path}.kept.backup`);
    }
    expect((await found(path)).verified).toEqual([]);
    // What is left of a store whose log and index are deleted: the file as it was written back last.
    copyFileSync(before, path);
    const { told, verified } = await found(path);
    expect(told).toEqual([]);
    expect(verified).toMatchObject([
      {
        code: "RECORD_MISSING",
        key: "agent:main:a",
        message: expect.stringMatching(/has 31 records; the backup .* has 33/),
      },
    ]);
  });
});

describe("a log that is taken away while the store is open", () => {
  it("ends the writes of the handle, and closing it saves what was acknowledged", async () => {
    const path = join(testFolder(), "store.db");
    const store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    for (let each = 0; each < 5; each++) await store.append(ref, [say(`n${each}`)]);
    rmSync(`${path}-wal`);
    await expect(store.append(ref, [say("lost")])).rejects.toMatchObject({ code: "STORE_IO", outcome: "not-applied" });
    expect(await textsOf(store, ref)).toHaveLength(5);
    await store.close();
    await using again = createSqliteStore({ path, searchFill: "on-demand" });
    expect(await textsOf(again, ref)).toEqual(["n0", "n1", "n2", "n3", "n4"]);
    await again.append(ref, [say("goes on")]);
    expect(await Array.fromAsync(again.maintenance?.verify({ full: true }) ?? [])).toEqual([]);
  });
});
