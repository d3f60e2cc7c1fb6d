import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

function hashOf(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** A store with one message, closed. */
async function filled(path: string): Promise<void> {
  await using store = createSqliteStore({ path, searchFill: "on-demand" });
  await createSession(store, "a");
  await store.append(refOf("a"), [say("one")]);
}

describe("bad input", () => {
  it("is half a record, of which none is read", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "store.db") });
    const ref = await createSession(store, "a");
    for (const text of ["one", "two", "three"]) await store.append(ref, [say(text)]);
    const seqs: number[] = [];
    for await (const { records } of store.read(ref, { limit: 1.5 })) seqs.push(...records.map(({ seq }) => seq));
    expect(seqs).toEqual([1]);
  });

  it.each([
    ["text", (path: string) => writeFileSync(path, "no database at all"), "STORE_CORRUPT"],
    [
      "another program's database",
      (path: string) => {
        const other = new Database(path);
        other.exec("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)");
        other.close();
      },
      "STORE_FOREIGN",
    ],
    ["half a header", (path: string) => writeFileSync(path, readFileSync(path).subarray(0, 50)), "STORE_CORRUPT"],
    ["zeros", (path: string) => writeFileSync(path, Buffer.alloc(8192)), "STORE_CORRUPT"],
  ])("is refused with a remedy, and stays as it is to the byte: %s", async (_what, make, code) => {
    const path = join(testFolder(), "store.db");
    if (_what === "half a header") await filled(path);
    make(path);
    const before = hashOf(path);
    await using store = createSqliteStore({ path });
    const failure: unknown = await store.append(refOf("a"), [say("never")]).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code, outcome: "not-applied", remedy: expect.stringMatching(/\S{3,}/) });
    await expect(store.list()).rejects.toMatchObject({ code });
    expect(hashOf(path)).toBe(before);
  });

  it("is a folder in the place of the file, or a path that leads nowhere", async () => {
    const folder = testFolder();
    mkdirSync(join(folder, "store.db"));
    await using store = createSqliteStore({ path: join(folder, "store.db") });
    await expect(store.list()).rejects.toMatchObject({ code: "PATH_UNSAFE" });
    await using missing = createSqliteStore({ path: join(folder, "none.db"), create: false });
    await expect(missing.list()).rejects.toMatchObject({ code: "STORE_NOT_FOUND" });
  });
});

describe("a database locked by a stuck process", () => {
  it(
    "is told with the process, after the deadline, and the loop never stands still for it",
    { tags: ["slow"] },
    async () => {
      const path = join(testFolder(), "store.db");
      await filled(path);
      const program = `
      const database = new (require("better-sqlite3"))(${JSON.stringify(path)});
      database.exec("BEGIN IMMEDIATE");
      process.stdout.write("held");
      setInterval(() => {}, 1000);`;
      const child = spawn(process.execPath, ["-e", program], {
        cwd: join(import.meta.dirname, ".."),
        stdio: ["ignore", "pipe", "inherit"],
      });
      try {
        await new Promise((resolve) => child.stdout.once("data", resolve));
        child.kill("SIGSTOP");
        await using store = createSqliteStore({ path, lockTimeoutMs: 600, searchFill: "on-demand" });
        expect(await textsOf(store, refOf("a"))).toEqual(["one"]);
        const delay = monitorEventLoopDelay({ resolution: 1 });
        let ticks = 0;
        const timer = setInterval(() => ticks++, 5);
        delay.enable();
        const failure: unknown = await store.append(refOf("a"), [say("two")]).catch((error: unknown) => error);
        delay.disable();
        clearInterval(timer);
        expect(failure).toMatchObject({ code: "STORE_LOCKED", outcome: "not-applied", retryable: true });
        // Whether an earlier attempt of a key is in the log cannot be looked up; of a new key there is none.
        const outcomeOf = (isNewKey: boolean): Promise<unknown> =>
          store
            .append(refOf("a"), [say("three")], { idempotencyKey: `k ${isNewKey}`, isNewKey })
            .catch((error) => error);
        expect(await Promise.all([outcomeOf(false), outcomeOf(true)])).toMatchObject([
          { code: "STORE_LOCKED", outcome: "unknown" },
          { code: "STORE_LOCKED", outcome: "not-applied" },
        ]);
        if (process.platform === "linux") expect(failure).toMatchObject({ details: { holderPid: child.pid } });
        // Asking again sleeps on the clock: other work goes on in between, a hundred times in the meantime on an idle machine.
        expect(ticks).toBeGreaterThan(15);
      } finally {
        child.kill("SIGKILL");
        await new Promise((resolve) => child.once("close", resolve));
      }
      await using again = createSqliteStore({ path });
      await again.append(refOf("a"), [say("two")]);
      expect(await textsOf(again, refOf("a"))).toEqual(["one", "two"]);
    },
  );
});

describe("a log that is gone", () => {
  it("costs what was only in it, and is no damage: what stands in the database is read and goes on", async () => {
    const path = join(testFolder(), "store.db");
    const moved = join(testFolder(), "store.db");
    const store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("early")]);
    const database = new Database(path);
    database.pragma("wal_checkpoint(TRUNCATE)");
    database.close();
    await store.append(ref, [say("late")]);
    writeFileSync(moved, readFileSync(path), { mode: 0o600 });
    await store.close();
    await using again = createSqliteStore({ path: moved });
    expect(await textsOf(again, ref)).toEqual(["early"]);
    await again.append(ref, [say("after")]);
    for await (const finding of again.maintenance?.verify({ full: true }) ?? []) expect(finding).toBeUndefined();
    expect(await textsOf(again, ref)).toEqual(["early", "after"]);
  });

  it("that is deleted beside an open store ends in an error or in the whole truth, never in silence", async () => {
    const path = join(testFolder(), "store.db");
    const store = createSqliteStore({ path, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one")]);
    rmSync(`${path}-wal`);
    renameSync(`${path}-shm`, `${path}-shm-away`);
    const acknowledged = ["one"];
    for (const text of ["two", "three"]) {
      await store.append(ref, [say(text)]).then(
        () => acknowledged.push(text),
        () => undefined,
      );
    }
    await wait(200);
    await store.close().catch(() => undefined);
    await using again = createSqliteStore({ path });
    // The open handle still had its log, and wrote it back when it was quiet or closed.
    expect(await textsOf(again, ref)).toEqual(acknowledged);
    expect(statSync(path).size).toBeGreaterThan(0);
  });
});

describe("large records", () => {
  it(
    "of 3 MB go in and out whole beside small ones, are shared by a fork, and go with the last",
    { tags: ["slow"] },
    async () => {
      const path = join(testFolder(), "store.db");
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      const ref = await createSession(store, "a");
      const large = `start ${"é☕x".repeat(700_000)} end`;
      expect(Buffer.byteLength(large)).toBeGreaterThan(3_000_000);
      for (let each = 0; each < 3; each++) await store.append(ref, [say("small"), say(large)]);
      await store.fork?.fork(ref, refOf("f"), { sessionId: "f" });
      expect(await textsOf(store, refOf("f"))).toEqual(["small", large, "small", large, "small", large]);
      await store.remove(ref, { purge: true });
      expect(await textsOf(store, refOf("f"))).toHaveLength(6);
      await store.remove(refOf("f"), { purge: true });
      await store.close();
      const database = new Database(path, { readonly: true });
      expect(database.prepare("SELECT count(*) FROM store_payloads").pluck().get()).toBe(0);
      database.close();
      // Freed pages hold nothing of it either.
      expect(readFileSync(path).includes("é☕xé☕x")).toBe(false);
    },
  );
});

describe("another tool that writes to the file", () => {
  it("between two turns is seen by the next one, and costs no record", { tags: ["slow"] }, async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("one")]);
    const tool = new Database(path);
    tool.exec("CREATE TABLE theirs (id INTEGER PRIMARY KEY, note TEXT)");
    const note = tool.prepare("INSERT INTO theirs (note) VALUES (?)");
    for (let each = 0; each < 5; each++) {
      tool.transaction(() => {
        for (let row = 0; row < 200; row++) note.run(`${each} ${"x".repeat(500)}`);
      })();
      // A column nobody of ours writes meanwhile, an index, all pages in new places.
      if (each === 1) tool.exec("UPDATE store_sessions SET keyed_sweep_at = keyed_sweep_at + 1; ANALYZE");
      if (each === 2) tool.exec("CREATE INDEX theirs_note ON theirs (note); DELETE FROM theirs WHERE id % 3 = 0");
      if (each === 3) tool.exec("VACUUM");
      await store.append(ref, [say(`n${each}`)], each === 2 ? { entry: { label: "x" } } : {});
    }
    expect(await textsOf(store, ref)).toEqual(["one", "n0", "n1", "n2", "n3", "n4"]);
    expect((await store.load(ref))?.revision).toBe(2);
    for await (const finding of store.maintenance?.verify({ full: true }) ?? []) expect(finding).toBeUndefined();
    // A transaction of theirs that is open is waited for, like one of ours.
    tool.exec("BEGIN IMMEDIATE");
    const append = store.append(ref, [say("waits")]);
    await wait(30);
    tool.exec("COMMIT");
    await append;
    tool.close();
    expect(await textsOf(store, ref)).toHaveLength(7);
  });
});

describe.skipIf(process.platform !== "linux")("handles and watches that come and go", () => {
  it("leave no descriptor behind", { tags: ["slow"], timeout: 60_000 }, async () => {
    const path = join(testFolder(), "store.db");
    const open = (): number => readdirSync("/proc/self/fd").length;
    await filled(path);
    const before = open();
    for (let each = 0; each < 60; each++) {
      await using store = createSqliteStore({ path });
      await store.append(refOf("a"), [say("more")], { durability: "process" });
      const gone = new AbortController();
      for await (const _page of store.watch?.watch(refOf("a"), { afterSeq: 0, signal: gone.signal }) ?? [])
        gone.abort();
      await expect(store.load(refOf("nobody"))).resolves.toBeNull();
      if (each % 10 === 0)
        await expect(createSqliteStore({ path: `${path}-none`, create: false }).list()).rejects.toThrow();
    }
    expect(open()).toBeLessThanOrEqual(before + 3);
    await using store = createSqliteStore({ path });
    expect(await textsOf(store, refOf("a"))).toHaveLength(61);
  });
});
