import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterEach, describe, expect, it } from "vitest";
import { claim } from "../src/claim-file.ts";
import { defaultDriver } from "../src/connection.ts";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) await ended(child, "SIGKILL");
});

function start(path: string, times: string): ChildProcess {
  const script = fileURLToPath(new URL("./hold-claim.ts", import.meta.url));
  const args = ["--conditions=@throughline/source", script, path, times];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

async function ended(child: ChildProcess, signal?: "SIGKILL"): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  if (signal !== undefined) child.kill(signal);
  return new Promise((resolve) => child.once("close", (code) => resolve(code)));
}

/** A process that holds the claim and does nothing else. */
async function holder(path: string): Promise<ChildProcess> {
  const child = start(path, "hold");
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  return child;
}

/** What a build that named a process in the file, or a disk that was full, may have left. */
const leftBehind = [
  ["an empty file", ""],
  ["the number of this process", String(process.pid)],
  ["the number of a process that runs", "1"],
  ["the number of none", "4194300"],
] as const;

describe("a claim", () => {
  it(
    "is one process's at a time, also while others come, go and remove the file",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const path = join(testFolder(), "mark");
      const contenders = Array.from({ length: 4 }, () => start(path, "400"));
      const got = contenders.map(
        (child) => new Promise<number>((resolve) => child.stdout?.once("data", (text) => resolve(Number(text)))),
      );
      expect(await Promise.all(contenders.map((child) => ended(child)))).toEqual([0, 0, 0, 0]);
      expect((await Promise.all(got)).reduce((one, other) => one + other, 0)).toBeGreaterThan(100);
      expect(existsSync(path)).toBe(false);
    },
  );

  it("is one handle's at a time, and ends with a process that is killed or let go", { tags: ["slow"] }, async () => {
    const path = join(testFolder(), "mark");
    const release = claim(path, defaultDriver);
    expect(claim(path, defaultDriver)).toBeNull();
    release?.({ keepFile: true });
    expect(existsSync(path)).toBe(true);
    const child = await holder(path);
    expect(claim(path, defaultDriver)).toBeNull();
    child.kill("SIGSTOP");
    expect(claim(path, defaultDriver)).toBeNull();
    await ended(child, "SIGKILL");
    expect(existsSync(path)).toBe(true);
    claim(path, defaultDriver)?.();
    expect(existsSync(path)).toBe(false);
  });

  it.each(leftBehind)("is nobody's where there is %s", (_what, content) => {
    const path = join(testFolder(), "mark");
    writeFileSync(path, content);
    const release = claim(path, defaultDriver);
    expect(release).not.toBeNull();
    expect(claim(path, defaultDriver)).toBeNull();
    release?.();
  });
});

describe("a store whose restoring was interrupted", () => {
  it.each(leftBehind)(
    "is restored all the same, where the file still is and where it is not: %s",
    async (_what, content) => {
      for (const isGone of [false, true]) {
        const folder = testFolder();
        const path = join(folder, "store.db");
        {
          await using store = createSqliteStore({ path });
          await store.append(await createSession(store, "a"), [say("kept")]);
          await store.maintenance?.backup(isGone ? `${path}.one.backup` : `${path}.two.backup`);
        }
        writeFileSync(path, "torn ".repeat(3000));
        if (isGone) {
          renameSync(path, `${path}.damaged-before`);
        }
        writeFileSync(`${path}.recovery`, content);
        await using store = createSqliteStore({ path, lockTimeoutMs: 1000 });
        expect(await textsOf(store, refOf("a"))).toEqual(["kept"]);
        expect(existsSync(`${path}.recovery`)).toBe(false);
      }
    },
  );

  it("without a backup beside it says which command completes it", async () => {
    const path = join(testFolder(), "store.db");
    writeFileSync(`${path}.recovery`, "");
    await using store = createSqliteStore({ path });
    await expect(store.list()).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      remedy: expect.stringContaining(`throughline restore-backup FILE --yes --store 'sqlite:${path}'`),
    });
  });

  it(
    "is waited for while another process is at it, and begun anew when that one is killed",
    { tags: ["slow"] },
    async () => {
      const path = join(testFolder(), "store.db");
      {
        await using store = createSqliteStore({ path });
        await store.append(await createSession(store, "a"), [say("kept")]);
        await store.maintenance?.backup(`${path}.one.backup`);
      }
      writeFileSync(path, "torn");
      const child = await holder(`${path}.recovery`);
      const told: string[] = [];
      await using store = createSqliteStore({
        path,
        lockTimeoutMs: 200,
        onEvent: (event) => void (event.name === "finding" && told.push(event.finding.code)),
      });
      await expect(store.list()).rejects.toMatchObject({ code: "STORE_LOCKED", retryable: true });
      await ended(child, "SIGKILL");
      expect(await textsOf(store, refOf("a"))).toEqual(["kept"]);
      expect(told).toEqual(["STORE_RESTORED"]);
    },
  );
});
