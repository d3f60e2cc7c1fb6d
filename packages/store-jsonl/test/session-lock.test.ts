import { execFileSync } from "node:child_process";
import { readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createJsonlStore } from "@throughline/store-jsonl";
import { systemRandom } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { nodeFiles } from "../src/files.ts";
import { kernelLocks } from "../src/lock-file.ts";
import { createSessionLocks } from "../src/session-lock.ts";
import { holdLocks } from "./lock-holder.ts";
import { mainRef, storeWithSession, textsOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

describe("the lock of a session", () => {
  it("is waited for up to the deadline, and its holder is named", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { lockTimeoutMs: 150, sessionsJson: false });
    await store.append(mainRef, [userDraft("first")]);
    const holder = await holdLocks(root);
    try {
      await expect(store.append(mainRef, [userDraft("refused")])).rejects.toMatchObject({
        code: "STORE_LOCKED",
        outcome: "not-applied",
        details: { pid: holder.pid },
      });
      expect(await textsOf(store)).toEqual(["first"]);
    } finally {
      holder.kill("SIGKILL");
    }
    await store.append(mainRef, [userDraft("second")]);
    expect(await textsOf(store)).toEqual(["first", "second"]);
    await store.close();
  });

  it("goes to the next as soon as its holder is killed, and is not taken from one that is stopped", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { lockTimeoutMs: 200, sessionsJson: false });
    const holder = await holdLocks(root);
    holder.kill("SIGSTOP");
    await expect(store.append(mainRef, [userDraft("refused")])).rejects.toMatchObject({
      code: "STORE_LOCKED",
      details: { state: "stopped" },
    });
    const appended = store.append(mainRef, [userDraft("first")]);
    holder.kill("SIGKILL");
    expect((await appended).records[0]?.seq).toBe(1);
    await store.close();
  });

  it("is shared by the handles of one process, which wait for one another", async () => {
    const root = newFolder();
    const first = await storeWithSession(root, { sessionsJson: false });
    const second = createJsonlStore({ root, sessionsJson: false });
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        (index % 2 === 0 ? first : second).append(mainRef, [userDraft(`n${index}`)], { durability: "process" }),
      ),
    );
    await first.close();
    await second.append(mainRef, [userDraft("after the first handle closed")]);
    expect(new Set(await textsOf(second)).size).toBe(41);
    await second.close();
  });

  it("is taken in one order by callers who name the same locks in two", async () => {
    const folder = newFolder();
    const [a, b, c] = ["a", "b", "c"].map((name) => `${folder}/${name}`) as [string, string, string];
    const locks = createSessionLocks({ files: nodeFiles, port: kernelLocks, random: systemRandom, timeoutMs: 10_000 });
    const elsewhere = kernelLocks.open(nodeFiles, c);
    expect(elsewhere.tryLock()).toBe(true);
    // The first caller has b and waits for c, so that the others form a line.
    const done = [locks.hold([b, c], () => 1), locks.hold([b, a], () => 2), locks.hold([a, b], () => 3)];
    await new Promise((resolve) => setTimeout(resolve, 20));
    elsewhere.unlock();
    const late = new Promise((resolve) => setTimeout(resolve, 5000, "they wait for each other"));
    expect(await Promise.race([Promise.all(done), late])).toEqual([1, 2, 3]);
    elsewhere.close();
    locks.close();
  });

  it("ends a wait that is aborted", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false });
    const holder = await holdLocks(root);
    try {
      const abort = new AbortController();
      const appended = store.append(mainRef, [userDraft("never")], { signal: abort.signal });
      setTimeout(() => abort.abort(), 20);
      await expect(appended).rejects.toMatchObject({ code: "ABORTED", outcome: "not-applied" });
    } finally {
      holder.kill("SIGKILL");
    }
    await store.close();
  });

  it("survives garbage in its file, and a file that was replaced", async () => {
    const root = newFolder();
    const locks = `${root}/agents/main/throughline/locks`;
    await (await storeWithSession(root, { sessionsJson: false })).close();
    for (const name of readdirSync(locks)) writeFileSync(`${locks}/${name}`, "garbage ".repeat(300));
    const store = createJsonlStore({ root, sessionsJson: false });
    await store.append(mainRef, [userDraft("first")]);
    const damaged = readdirSync(locks).filter((name) => name.includes(".damaged-"));
    expect(damaged.length).toBeGreaterThan(0);
    for (const name of readdirSync(locks)) rmSync(`${locks}/${name}`);
    await store.append(mainRef, [userDraft("second")]);
    expect(readdirSync(locks).every((name) => statSync(`${locks}/${name}`).size === 0)).toBe(true);
    expect(await textsOf(store)).toEqual(["first", "second"]);
    await store.close();
  });

  it.skipIf(process.getuid?.() !== 0)("is refused where its file cannot be written, not taken in vain", () => {
    const root = newFolder();
    execFileSync("chmod", ["755", root]);
    writeFileSync(`${root}/lock`, "", { mode: 0o644 });
    const program = `
      const { openLockFile } = await import(${JSON.stringify(new URL("../src/lock-file.ts", import.meta.url).href)});
      const { nodeFiles } = await import(${JSON.stringify(new URL("../src/files.ts", import.meta.url).href)});
      process.setuid(65534);
      try { openLockFile(nodeFiles, ${JSON.stringify(`${root}/lock`)}); console.log("opened"); } catch (error) { console.log(error.code); }`;
    const answer = execFileSync(process.execPath, ["--no-warnings", "--input-type=module", "-e", program])
      .toString()
      .trim();
    expect(answer).toBe("STORE_READ_ONLY");
  });
});
