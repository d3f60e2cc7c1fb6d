import { appendFileSync, copyFileSync, readFileSync, renameSync, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { sessionRef } from "@throughline/core";
import { createJsonlStore, type LockPort } from "@throughline/store-jsonl";
import { kernelLocks } from "../src/lock-file.ts";
import { type Files, nodeFiles } from "../src/files.ts";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const logOf = (root: string): string => `${root}/agents/main/throughline/entries.log`;

describe("the entries log", () => {
  it(
    "is written anew when most of it is history, under the hands of others who have it open",
    { tags: ["slow"] },
    async () => {
      const root = newFolder();
      const store = await storeWithSession(root, { sessionsJson: false, derivedDelayMs: 1 });
      const other = createJsonlStore({ root, sessionsJson: false, derivedDelayMs: 1 });
      const second = sessionRef({ key: "agent:main:second" });
      await other.save(second, { sessionId: "s2" }, { ifRevision: null });
      const large = "x".repeat(13_000);
      let largestBytes = 0;
      for (let count = 1; count <= 400; count++) {
        const writer = count % 3 === 0 ? other : store;
        await writer.append(mainRef, [], {
          entry: { count, large, [`field${count % 7}`]: count },
          durability: "process",
        });
        await other.append(second, [], { entry: { count }, durability: "process" });
        largestBytes = Math.max(largestBytes, statSync(logOf(root)).size);
        if (count % 40 === 0) await pause(20);
      }
      // Written once each they would be 5.4 MB.
      await expect.poll(() => statSync(logOf(root)).size).toBeLessThan(1_100_000);
      expect(largestBytes).toBeLessThan(4_000_000);
      for (const one of [store, other]) {
        expect((await one.load(mainRef))?.entry).toMatchObject({ count: 400, field0: 399, field1: 400, field2: 394 });
        expect((await one.load(second))?.entry).toMatchObject({ count: 400 });
      }
      expect((await store.load(mainRef))?.revision).toBe(401);
      await Promise.all([store.close(), other.close()]);
      const again = createJsonlStore({ root, index: false });
      expect((await again.load(mainRef))?.revision).toBe(401);
      expect((await again.load(second))?.entry).toMatchObject({ count: 400 });
      await again.close();
    },
  );

  it("keeps a line that it does not understand, and is not written anew then", async () => {
    const root = newFolder();
    const store = await storeWithSession(root, { sessionsJson: false, derivedDelayMs: 1 });
    const newer = '{"v":99,"op":"mystery"}';
    appendFileSync(logOf(root), `${newer}\n`);
    const large = "x".repeat(13_000);
    for (let count = 1; count <= 120; count++)
      await store.append(mainRef, [], { entry: { count, large }, durability: "process" });
    await pause(50);
    await store.close();
    expect(readFileSync(logOf(root), "utf8")).toContain(newer);
    expect(statSync(logOf(root)).size).toBeGreaterThan(1_500_000);
  });

  it("has at the close what it was kept from taking before", async () => {
    const root = newFolder();
    let isHeld = false;
    const locks: LockPort = {
      ...kernelLocks,
      open(files, path) {
        const file = kernelLocks.open(files, path);
        return { ...file, tryLock: () => !(isHeld && path.endsWith("/entries")) && file.tryLock() };
      },
    };
    const findings: string[] = [];
    const store = await storeWithSession(root, {
      sessionsJson: false,
      derivedDelayMs: 1,
      lockTimeoutMs: 20,
      locks,
      onEvent: (event) => event.name === "finding" && findings.push(event.finding.message),
    });
    isHeld = true;
    await store.append(mainRef, [{ type: "custom", customType: "x" }], { entry: { label: "late" } });
    while (findings.length === 0) await pause(5);
    isHeld = false;
    await store.close();
    expect(readFileSync(logOf(root), "utf8")).toContain('"late"');
  });

  it("is let go of without a word when it was replaced during a flush and cannot be closed well", async () => {
    const root = newFolder();
    let closes = Infinity;
    const files: Files = {
      ...nodeFiles,
      async flush(handle) {
        await nodeFiles.flush(handle);
        if (closes === 1) await pause(30);
      },
      close(handle) {
        nodeFiles.close(handle);
        if (--closes === 0) throw Object.assign(new Error("EIO"), { code: "EIO", syscall: "close" });
      },
    };
    const store = await storeWithSession(root, { sessionsJson: false, index: false, files });
    closes = 1;
    const appended = store.append(mainRef, [], { entry: { label: "kept" } });
    await pause(10);
    copyFileSync(logOf(root), `${root}/copy`);
    renameSync(`${root}/copy`, logOf(root));
    expect((await store.load(mainRef))?.entry.label).toBe("kept");
    await appended;
    // Nobody waits for the old one: an error in it would end the process.
    await pause(50);
    await store.close();
  });
});
