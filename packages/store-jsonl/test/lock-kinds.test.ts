import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { systemRandom } from "@throughline/core/internal";
import type { SessionEvent } from "@throughline/core";
import { createJsonlStore, properLockfileLocks } from "@throughline/store-jsonl";
import { kernelLocks } from "../src/lock-file.ts";
import { nodeFiles } from "../src/files.ts";
import lockfile from "proper-lockfile";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { createSessionLocks } from "../src/session-lock.ts";
import { countFaults } from "./fault-counts.ts";
import { faultyFiles } from "./faulty-files.ts";
import { takeOver } from "./lock-takeover.ts";
import { findingCodesOf, mainRef, storeWithSession, textsOf, transcriptOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const child = new URL("lock-child.ts", import.meta.url).pathname;
const canUnshare =
  process.getuid?.() === 0 && spawnSync("unshare", ["-n", "-m", "-p", "-f", "-i", "-u", "true"]).status === 0;

/** Waits until a started process has said something. */
function said(running: ReturnType<typeof spawn>, word: string): Promise<void> {
  return new Promise((resolve) => {
    running.stdout?.on("data", (chunk: Buffer) => {
      if (chunk.toString().includes(word)) resolve();
    });
  });
}

describe("a lock of the kernel", () => {
  it(
    "has one owner at a time while its owners are killed one after the other",
    { tags: ["slow"], timeout: 60_000 },
    async (context) => {
      const rounds = testSize({ short: 3, long: 100 });
      const { doubleOwners, latenciesMs } = await takeOver(`${newFolder()}/lock`, rounds, 4);
      expect(doubleOwners).toBe(0);
      expect(latenciesMs).toHaveLength(rounds);
      countFaults(context, { kills: rounds });
    },
  );

  it.skipIf(!canUnshare)(
    "excludes a container that shares the folder: other network, processes, mounts",
    { tags: ["slow"] },
    async () => {
      const folder = newFolder();
      const namespaces = ["-n", "-m", "-p", "-f", "-i", "-u", "--mount-proc", "--kill-child=SIGKILL"];
      const holder = spawn("unshare", [...namespaces, process.execPath, child, `${folder}/lock`], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      try {
        await said(holder, "held");
        const locks = createSessionLocks({ files: nodeFiles, port: kernelLocks, random: systemRandom, timeoutMs: 100 });
        await expect(locks.hold([`${folder}/lock`], () => "in")).rejects.toMatchObject({ code: "STORE_LOCKED" });
        locks.close();
      } finally {
        holder.kill("SIGKILL");
      }
    },
  );

  it("costs no stack trace when it is refused, and leaves the traces of others alone", { tags: ["slow"] }, async () => {
    const folder = newFolder();
    const holder = spawn(process.execPath, [child, `${folder}/lock`], { stdio: ["ignore", "pipe", "inherit"] });
    const before = Error.stackTraceLimit;
    try {
      await said(holder, "held");
      const lock = kernelLocks.open(nodeFiles, `${folder}/lock`);
      expect(lock.tryLock()).toBe(false);
      expect(Error.stackTraceLimit).toBe(before);
      lock.close();
    } finally {
      holder.kill("SIGKILL");
    }
  });

  it(
    "is lost when its file is read in the process that holds it: so a store never opens one",
    { tags: ["slow"] },
    async () => {
      const folder = newFolder();
      const lock = kernelLocks.open(nodeFiles, `${folder}/lock`);
      expect(lock.tryLock()).toBe(true);
      readFileSync(`${folder}/lock`);
      execFileSync(process.execPath, [child, `${folder}/lock`, "1"], { timeout: 120_000 });
      lock.unlock();
      lock.close();
      const root = newFolder();
      const opened: string[] = [];
      const files = {
        ...nodeFiles,
        open(path: string, mode: Parameters<typeof nodeFiles.open>[1]) {
          if (mode !== "create") opened.push(path);
          return nodeFiles.open(path, mode);
        },
      };
      const store = await storeWithSession(root, { files });
      await store.append(mainRef, [userDraft("one")], { entry: { label: "x" } });
      await store.list();
      for await (const _finding of store.maintenance?.verify({ full: true }) ?? []);
      await store.close();
      expect(opened.some((path) => path.includes("/sessions/"))).toBe(true);
      expect(opened.filter((path) => path.includes("/locks/") || path.includes("index.db"))).toEqual([]);
    },
  );

  it("is taken through one library: two on the same file would not see each other", () => {
    const source = new URL("../src/", import.meta.url).pathname;
    const texts = readdirSync(source).map((name) => readFileSync(`${source}${name}`, "utf8"));
    expect(texts.filter((text) => text.includes("better-sqlite3"))).toEqual([]);
    expect(texts.filter((text) => text.includes("getBuiltinModule"))).toEqual([]);
    expect(texts.filter((text) => text.includes("builtinSqlite()"))).toHaveLength(1);
  });
});

describe("a folder on a network file system", () => {
  const networkFiles = { ...nodeFiles, fileSystem: () => "network" as const };

  it("is written to after it was said what its locks cannot promise, and gets no index", async () => {
    const root = newFolder();
    const events: SessionEvent[] = [];
    const store = await storeWithSession(root, { files: networkFiles, onEvent: (event) => void events.push(event) });
    await store.append(mainRef, [userDraft("one")]);
    await store.list();
    await store.close();
    expect(findingCodesOf(events)).toEqual(["FILE_SYSTEM_REMOTE"]);
    expect(existsSync(`${root}/agents/main/throughline/index.db`)).toBe(false);
  });

  it(
    "takes proper-lockfile when told, which takes nothing over from a process that died",
    { tags: ["slow"] },
    async () => {
      const root = newFolder();
      const events: SessionEvent[] = [];
      const locks = properLockfileLocks(lockfile);
      const options = { files: networkFiles, locks, lockTimeoutMs: 150, sessionsJson: false };
      const store = await storeWithSession(root, {
        ...options,
        onEvent: (event: SessionEvent) => void events.push(event),
      });
      await Promise.all(["a", "b", "c"].map((text) => store.append(mainRef, [userDraft(text)])));
      const folder = `${root}/agents/main/throughline/locks`;
      expect(readdirSync(folder)).toEqual([]);
      // As a process leaves it that was killed: eight years old by its time.
      for (const name of "0123456789abcdef") mkdirSync(`${folder}/${name}.lock`);
      for (const name of readdirSync(folder)) execFileSync("touch", ["-d", "2018-01-01", `${folder}/${name}`]);
      await expect(store.append(mainRef, [userDraft("refused")])).rejects.toMatchObject({ code: "STORE_LOCKED" });
      for (const name of readdirSync(folder)) rmSync(`${folder}/${name}`, { recursive: true });
      await store.append(mainRef, [userDraft("d")]);
      expect((await textsOf(store)).toSorted()).toEqual(["a", "b", "c", "d"]);
      await store.close();
      expect(findingCodesOf(events)).toEqual([]);
    },
  );
});

describe("a folder that OpenClaw uses", () => {
  const header = { type: "session", version: 3, id: "oc1", timestamp: "2026-01-02T03:04:05.006Z", cwd: "/x" };

  function openclawFolder(): string {
    const root = newFolder();
    mkdirSync(`${root}/agents/main/sessions`, { recursive: true });
    writeFileSync(transcriptOf(root, "oc1"), `${JSON.stringify(header)}\n`);
    const entry = { "agent:main:main": { sessionId: "oc1", updatedAt: 1_767_323_045_006 } };
    writeFileSync(`${root}/agents/main/sessions/sessions.json`, JSON.stringify(entry));
    return root;
  }

  it(
    "has its lock files honored: one whose owner lives is waited for and named, one left over is cleared",
    { tags: ["slow"] },
    async () => {
      const root = openclawFolder();
      const lock = `${transcriptOf(root, "oc1")}.lock`;
      const store = createJsonlStore({ root, lockTimeoutMs: 150 });
      await store.load(mainRef);
      const createdAt = "2018-01-01T00:00:00.000Z";
      writeFileSync(lock, JSON.stringify({ pid: process.ppid, createdAt }));
      await expect(store.append(mainRef, [userDraft("refused")])).rejects.toMatchObject({
        code: "STORE_LOCKED",
        details: { pid: process.ppid },
      });
      const appended = store.append(mainRef, [userDraft("waits")]);
      setTimeout(() => rmSync(lock), 40);
      await appended;
      const dead = spawnSync("true").pid;
      const leave = (owner: Readonly<Record<string, unknown>>, ageMs: number): void => {
        writeFileSync(lock, JSON.stringify({ createdAt, ...owner }));
        utimesSync(lock, new Date(Date.now() - ageMs), new Date(Date.now() - ageMs));
      };
      leave({ pid: dead }, 31_000);
      await store.append(mainRef, [userDraft("after a dead owner")]);
      expect(existsSync(lock)).toBe(false);
      // The number of a process that ended may be another's by now: this one did not begin when the owner did.
      leave({ pid: process.pid, starttime: 1 }, 31_000);
      await store.append(mainRef, [userDraft("after an owner whose number was given away")]);
      expect(existsSync(lock)).toBe(false);
      // Of a process in a container, whose number means nothing here: for as long as it may hold the lock it is waited for.
      for (const [owner, ageMs] of [
        [{ pid: dead }, 5000],
        [{ pid: dead, maxHoldMs: 300_000 }, 200_000],
      ] as const) {
        leave(owner, ageMs);
        await expect(store.append(mainRef, [userDraft("refused")])).rejects.toMatchObject({ code: "STORE_LOCKED" });
        expect(existsSync(lock)).toBe(true);
      }
      // One of ours would be held together with the kernel's lock.
      leave({ pid: process.pid, maxHoldMs: 10_000, by: "throughline" }, 0);
      await store.append(mainRef, [userDraft("after one of ours that was killed")]);
      expect(existsSync(lock)).toBe(false);
      await store.close();
    },
  );

  it(
    "tells of one that does not say whose it is when it ends, also when its time is to come",
    { tags: ["slow"] },
    async () => {
      const root = openclawFolder();
      const lock = `${transcriptOf(root, "oc1")}.lock`;
      const store = createJsonlStore({ root, lockTimeoutMs: 50 });
      await store.load(mainRef);
      for (const content of ["", '{"pid":12', "garbled"]) {
        for (const ageMs of [0, 5000, -5000, 31_000, -31_000, -3_600_000]) {
          writeFileSync(lock, content);
          utimesSync(lock, new Date(Date.now() - ageMs), new Date(Date.now() - ageMs));
          const appended = store.append(mainRef, [userDraft("x")]);
          if (Math.abs(ageMs) > 30_000) await appended;
          else
            await expect(appended).rejects.toMatchObject({
              code: "STORE_LOCKED",
              remedy: expect.stringContaining("Try again: 30 s after it was written"),
            });
          rmSync(lock, { force: true });
        }
      }
      await store.close();
    },
  );

  it("costs a store of its own no lock file", async () => {
    const root = newFolder();
    const store = await storeWithSession(root);
    const faults = faultyFiles();
    await store.append(mainRef, [userDraft("one")]);
    await store.close();
    const again = createJsonlStore({ root, files: faults.files });
    await again.append(mainRef, [userDraft("two")]);
    await again.close();
    expect(existsSync(`${root}/agents/main/throughline/openclaw-was-here`)).toBe(false);
  });
});
