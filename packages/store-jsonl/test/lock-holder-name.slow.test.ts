import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { holdLocks } from "./lock-holder.ts";
import { mainRef, storeWithSession, userDraft } from "./session-fixture.ts";
import { makeFolder } from "./temporary-folder.ts";

function canMount(): boolean {
  return (
    process.getuid?.() === 0 &&
    spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]).status === 0
  );
}

describe("the holder of a lock", () => {
  it("is told from one of another disk, whose lock file has the same inode", async (context) => {
    context.skip(!canMount(), "need root, to mount two small disks");
    const folder = makeFolder();
    const holders: Awaited<ReturnType<typeof holdLocks>>[] = [];
    const roots = ["one", "two"].map((name) => `${folder}/${name}`);
    try {
      for (const root of roots) {
        mkdirSync(root);
        execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", root]);
      }
      for (const root of roots) {
        await (await storeWithSession(root, { sessionsJson: false })).close();
        holders.push(await holdLocks(root));
      }
      for (const [index, root] of roots.entries()) {
        const store = createJsonlStore({ root, lockTimeoutMs: 50, sessionsJson: false });
        await expect(store.append(mainRef, [userDraft("refused")])).rejects.toMatchObject({
          code: "STORE_LOCKED",
          details: { pid: holders[index]?.pid },
        });
        await store.close();
      }
    } finally {
      for (const holder of holders) holder.kill("SIGKILL");
      for (const root of roots) spawnSync("umount", ["-l", root]);
      rmSync(folder, { recursive: true });
    }
  });
});
