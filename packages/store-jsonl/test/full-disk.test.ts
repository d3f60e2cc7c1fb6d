import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { mainRef, storeWithSession, textsOf, userDraft } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();

function canMount(): boolean {
  return (
    process.getuid?.() === 0 &&
    spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]).status === 0
  );
}

describe("a small disk", () => {
  it("that is full takes nothing by halves, and goes on when there is space again", async (context) => {
    context.skip(!canMount(), "need root, to mount a small disk");
    const root = newFolder();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", root]);
    try {
      const store = await storeWithSession(root, { index: false, sessionsJson: false });
      const acknowledged: string[] = [];
      let refusals = 0;
      for (let index = 0; refusals < 5; index++) {
        const text = `n${index} ${"x".repeat(refusals === 0 ? 5000 : 3)}`;
        try {
          await store.append(mainRef, [userDraft(text), userDraft(`${text} too`)]);
          acknowledged.push(text, `${text} too`);
        } catch (error) {
          expect(error).toMatchObject({ code: "STORE_FULL", outcome: "not-applied", retryable: true });
          refusals++;
          // What little is left is taken too, so that the next append is refused again.
          if (refusals === 1) fill(root);
        }
      }
      expect(acknowledged.length).toBeGreaterThan(20);
      expect(await textsOf(store)).toEqual(acknowledged);
      execFileSync("mount", ["-o", "remount,size=512k", root]);
      await store.append(mainRef, [userDraft("there is space again")]);
      await store.close();
      const again = createJsonlStore({ root, index: false, sessionsJson: false });
      expect(await textsOf(again)).toEqual([...acknowledged, "there is space again"]);
      const findings: string[] = [];
      for await (const { code } of again.maintenance!.verify({ full: true })) findings.push(code);
      expect(findings).toEqual([]);
      await again.close();
    } finally {
      execFileSync("umount", ["-l", root]);
    }
  });
});

function fill(root: string): void {
  for (const size of [4096, 1024, 64, 1])
    for (let count = 0; ; count++) {
      try {
        writeFileSync(`${root}/filler`, "x".repeat(size), { flag: "a" });
      } catch {
        break;
      }
    }
}
