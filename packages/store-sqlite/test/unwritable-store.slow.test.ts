import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { say } from "./append-drafts.ts";
import { copyToRead } from "../src/open-unwritable.ts";
import { defaultDriver } from "../src/connection.ts";
import { createSession, testFolder } from "./test-folder.ts";

/** Does something to a log again and again, as processes that use a store do. */
async function meanwhile(work: string, path: string): Promise<{ stop(): Promise<number> }> {
  const stop = new Int32Array(new SharedArrayBuffer(4));
  const script = `
    const { appendFileSync, truncateSync, unlinkSync, writeFileSync } = require("node:fs");
    const { workerData: { path, stop }, parentPort } = require("node:worker_threads");
    let times = 0;
    parentPort.postMessage("begun");
    for (; Atomics.load(stop, 0) === 0; times++) { ${work} }
    parentPort.postMessage(times);`;
  const worker = new Worker(script, { eval: true, workerData: { path, stop } });
  await once(worker, "message");
  return {
    stop: async () => {
      Atomics.store(stop, 0, 1);
      const [times] = (await once(worker, "message")) as [number];
      return times;
    },
  };
}

async function filledStore(folder: string): Promise<string> {
  const path = join(folder, "store.db");
  await using store = createSqliteStore({ path });
  await store.append(await createSession(store, "a"), [say("one")]);
  return path;
}

const undo: (() => void)[] = [];

// Tests beside these look at what is left in the folder for temporary files.
beforeEach(() => {
  vi.stubEnv("TMPDIR", testFolder());
});

afterEach(() => {
  vi.unstubAllEnvs();
  for (const each of undo.splice(0).toReversed()) each();
});

/** The folder as somebody sees it who may not write there; null where this user can always write. */
function withoutWriting(folder: string): string | null {
  if (process.getuid?.() !== 0) {
    chmodSync(folder, 0o500);
    undo.push(() => chmodSync(folder, 0o700));
    return folder;
  }
  const view = testFolder();
  try {
    execFileSync("/bin/mount", ["--bind", folder, view], { stdio: "ignore" });
    undo.push(() => execFileSync("/bin/umount", [view]));
    execFileSync("/bin/mount", ["-o", "remount,ro,bind", view], { stdio: "ignore" });
  } catch {
    return null;
  }
  return view;
}

it("a log that goes while a store is copied to be read has the copy begun anew", async () => {
  const path = await filledStore(testFolder());
  const log = await meanwhile(`writeFileSync(path, "not a whole header"); unlinkSync(path);`, `${path}-wal`);
  const ends = new Map<string, number>();
  for (let copies = 0; copies < 150; copies++) {
    let end = "copied";
    try {
      copyToRead(path, defaultDriver).remove();
    } catch (error) {
      end = (error as { code: string }).code;
    }
    ends.set(end, (ends.get(end) ?? 0) + 1);
  }
  expect(await log.stop()).toBeGreaterThan(100);
  expect(ends.get("copied")).toBeGreaterThan(0);
  // It may be in the way of each of the copies that are begun.
  expect([...ends.keys()].filter((end) => end !== "STORE_LOCKED")).toEqual(["copied"]);
});

it("a store that is written without a pause and cannot be written here is STORE_LOCKED, whatever room there is", async (context) => {
  const folder = testFolder();
  const path = await filledStore(folder);
  const log = await meanwhile(
    `appendFileSync(path, "x"); if (times % 1000 === 0) truncateSync(path, 1);`,
    `${path}-wal`,
  );
  try {
    const view = withoutWriting(folder);
    if (view === null) return context.skip("this user may write everywhere");
    const ends: Error[] = [];
    // The log may be left alone for the moment that a copy takes; then it is written behind it.
    for (let tries = 0; tries < 5000 && ends.length < 3; tries++) {
      await using store = createSqliteStore({ path: join(view, "store.db"), create: false, lockTimeoutMs: 0 });
      await store.list().catch((error: Error) => {
        if (!error.message.includes("since it was opened")) ends.push(error);
      });
    }
    const locked = { code: "STORE_LOCKED", message: expect.stringMatching(/written without a pause/) };
    expect(ends).toMatchObject([locked, locked, locked]);
  } finally {
    await log.stop();
  }
});

/** As if nothing had been done in the folder for so long. */
function age(folder: string, hours: number): string {
  const then = Date.now() / 1000 - hours * 3600;
  utimesSync(folder, then, then);
  return folder;
}

it("what a killed process has left of such a copy is removed by the next one, and nothing else is", async () => {
  const folder = testFolder();
  const path = await filledStore(folder);
  const temporary = testFolder();
  vi.stubEnv("TMPDIR", temporary);
  const copies = (): string[] => readdirSync(temporary).toSorted();
  const script = fileURLToPath(new URL("copy-then-die.ts", import.meta.url));
  const { signal } = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path]);
  expect(signal).toBe("SIGKILL");
  const [left = ""] = copies();
  expect(existsSync(join(temporary, left, "store.db"))).toBe(true);
  // Of a living process, which is at it for long.
  const living = copyToRead(path, defaultDriver);
  const other = testFolder(folder);
  writeFileSync(join(other, "kept"), "kept");
  symlinkSync(other, join(temporary, "throughline-read-link"));
  // Without a claim: the process that made it was killed before it claimed it.
  for (const [name, hours, mode] of [
    ["throughline-read-day", 25, 0o700],
    ["throughline-read-hour", 1, 0o700],
    ["throughline-read-new", 0, 0o700],
    ["throughline-read-open", 25, 0o755],
    ["throughline-other", 25, 0o700],
  ] as const) {
    mkdirSync(join(temporary, name), { mode });
    writeFileSync(join(temporary, name, "store.db"), "content");
    symlinkSync(other, join(temporary, name, "link"));
    age(join(temporary, name), hours);
  }
  // What has just been made may not have come to its claim yet.
  copyToRead(path, defaultDriver).remove();
  expect(copies()).toContain(left);
  age(join(temporary, left), 1);
  const livingFolder = age(join(living.path, ".."), 48);
  copyToRead(path, defaultDriver).remove();
  expect(copies()).toEqual(
    ["throughline-other", "throughline-read-link", "throughline-read-new", "throughline-read-open"]
      .concat(livingFolder.slice(temporary.length + 1))
      .toSorted(),
  );
  expect(existsSync(living.path)).toBe(true);
  living.remove();
  expect(existsSync(livingFolder)).toBe(false);
  expect(readdirSync(other)).toEqual(["kept"]);
});
