import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { createJsonlStore, type JsonlStoreOptions } from "@throughline/store-jsonl";
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
  it.for([
    ["without anything derived", { index: false, sessionsJson: false }, 256],
    ["with index.db and sessions.json", { index: true, sessionsJson: true, derivedDelayMs: 20 }, 512],
  ] as const)(
    "that is full takes nothing by halves, and goes on when there is space again, %s",
    async ([_name, options, sizeKb], context) => {
      context.skip(!canMount(), "need root, to mount a small disk");
      const root = newFolder();
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${sizeKb}k`, "tmpfs", root]);
      try {
        const store = await storeWithSession(root, options);
        const acknowledged: string[] = [];
        let refusals = 0;
        let total = 0;
        for (let index = 0; refusals < 5; index++) {
          const text = `n${index} ${"x".repeat(refusals === 0 ? 5000 : 3)}`;
          try {
            await store.append(mainRef, [userDraft(text), userDraft(`${text} too`)], { entry: { totalTokens: index } });
            acknowledged.push(text, `${text} too`);
            total = index;
          } catch (error) {
            expect(error).toMatchObject({ code: "STORE_FULL", outcome: "not-applied", retryable: true });
            refusals++;
            // What little is left is taken too, so that the next append is refused again.
            if (refusals === 1) fill(root);
          }
          // So that what is derived is written while the disk fills up, and fails to be when it is full.
          if (index % 8 === 0 || refusals > 0) await setTimeout(30);
        }
        expect(acknowledged.length).toBeGreaterThan(20);
        expect(await textsOf(store)).toEqual(acknowledged);
        expect((await store.load(mainRef))?.entry["totalTokens"]).toBe(total);
        execFileSync("mount", ["-o", `remount,size=${2 * sizeKb}k`, root]);
        await store.append(mainRef, [userDraft("there is space again")], { entry: { label: "again" } });
        await store.close();
        await expectWhole(root, options, [...acknowledged, "there is space again"]);
      } finally {
        execFileSync("umount", ["-l", root]);
      }
    },
  );
});

/** What was acknowledged is there, nothing is found wrong with it, and what is derived says the same. */
async function expectWhole(
  root: string,
  options: Partial<JsonlStoreOptions>,
  acknowledged: readonly string[],
): Promise<void> {
  const store = createJsonlStore({ root, ...options });
  expect(await textsOf(store)).toEqual(acknowledged);
  const findings: string[] = [];
  for await (const { code } of store.maintenance!.verify({ full: true })) findings.push(code);
  expect(findings).toEqual([]);
  const { sessions } = await store.list();
  expect(sessions).toMatchObject([{ ref: mainRef, messageCount: acknowledged.length, entry: { label: "again" } }]);
  await store.close();
  if (options.sessionsJson !== true) return;
  const view = JSON.parse(readFileSync(`${root}/agents/main/sessions/sessions.json`, "utf8")) as Record<
    string,
    unknown
  >;
  expect(view).toMatchObject({ [mainRef.key]: { label: "again", totalTokens: sessions[0]?.entry["totalTokens"] } });
}

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
