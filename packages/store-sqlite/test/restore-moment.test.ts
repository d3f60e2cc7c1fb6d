import { copyFileSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { createSqliteStore, restoreSqliteBackup } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { alone, assertNoRestore, recoverMark } from "../src/claim-file.ts";
import { defaultDriver } from "../src/connection.ts";
import { prepareFile } from "../src/prepare-file.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

async function damagedWithBackup(): Promise<{ readonly path: string; readonly backupPath: string }> {
  const path = join(testFolder(), "store.db");
  const backupPath = `${path}.one.backup`;
  await using store = createSqliteStore({ path });
  await store.append(await createSession(store, "a"), [say("kept")]);
  await store.maintenance?.backup(backupPath);
  return { path, backupPath };
}

async function expectRestored(path: string): Promise<void> {
  await using store = createSqliteStore({ path });
  expect(await textsOf(store, { namespace: "", agentId: "main", key: "agent:main:a" })).toEqual(["kept"]);
}

describe("opening a store in the moment of a restore", () => {
  it("takes the file that a restore put there between the look for the file and the look for the restore", async () => {
    const { path, backupPath } = await damagedWithBackup();
    renameSync(path, `${path}.away`);
    const isMade = prepareFile(path, true, () => {
      restoreSqliteBackup({ backupPath, path, keptAs: "kept" });
      assertNoRestore(path, defaultDriver);
    });
    expect(isMade).toBe(false);
    await expectRestored(path);
  });

  it("waits while the file is away, and takes what is there once the restore has ended", async () => {
    const { path, backupPath } = await damagedWithBackup();
    renameSync(path, `${path}.away`);
    let opening: Promise<void> | undefined;
    const looks: unknown[] = [];
    alone(recoverMark(path), defaultDriver, "busy", () => {
      const look = (): void => void prepareFile(path, true, () => assertNoRestore(path, defaultDriver));
      try {
        look();
      } catch (error) {
        looks.push((error as { readonly code?: unknown }).code);
      }
      copyFileSync(backupPath, path);
      opening = expectRestored(path);
    });
    await opening;
    expect(looks).toEqual(["STORE_LOCKED"]);
    expect(readFileSync(path, "latin1").startsWith("SQLite format 3")).toBe(true);
  });
});
