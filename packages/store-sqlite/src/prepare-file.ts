import { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { inOneThread } from "@throughline/core/internal/node";
import { dirname } from "node:path";
import {
  assertRegular,
  createPrivateFile,
  isInUse,
  isThere,
  makeFolders,
  removeFile,
  sizeOf,
  syncFolder,
} from "./store-file.ts";

/**
 * Makes sure that the file exists, is private and is no link. SQLite gives its side files the mode of the database, so
 * the mode is set before SQLite opens it. Returns whether the file was created.
 * @throws {ThroughlineError} STORE_NOT_FOUND, PATH_UNSAFE, STORE_CORRUPT, and the errors of `assertNoRestore`
 */
export function prepareFile(path: string, create: boolean, assertNoRestore: () => void): boolean {
  for (const each of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) assertRegular(each);
  const isPrepared = (): boolean => {
    if (!isThere(path)) return false;
    assertNotEmptied(path, create);
    return true;
  };
  if (isPrepared()) return false;
  // While a backup replaces a damaged file, the path names no file for a moment. No new store may begin then.
  assertNoRestore();
  // The restore may have ended between the two checks.
  if (isPrepared()) return false;
  assertNoneLeft(path);
  if (!create) throw refused("STORE_NOT_FOUND", `There is no store at ${path}.`, { path });
  makeFolders(dirname(path));
  inOneThread(() => createPrivateFile(path));
  syncFolder(dirname(path));
  return true;
}

/**
 * Removes a file in which no store could be created, for example on a full disk. A file with content stays. A process
 * that has the removed file open notices at its next write that the file has no name.
 */
export function removeUnbegun(path: string): void {
  const isUnbegun = sizeOf(path) === 0 && !["-wal", "-shm", "-journal"].some((side) => isThere(`${path}${side}`));
  if (isUnbegun) removeFile(path);
}

/**
 * A store with a log is never empty, and SQLite would delete the log of an empty file with all its acknowledged
 * commits. An empty file without a log is a store that has not begun.
 */
function assertNotEmptied(path: string, create: boolean): void {
  if (sizeOf(path) > 0) return;
  if (sizeOf(`${path}-wal`) > 0)
    throw refused("STORE_CORRUPT", `${path} is empty, but its log is not; neither was changed.`, { path });
  if (!create) throw refused("STORE_NOT_FOUND", `There is no store at ${path}: the file is empty.`, { path });
}

/**
 * A file that was moved or deleted may have left its log, which SQLite would delete with all its acknowledged commits.
 * A process that still has the file open would share the index of that log with the new file, and each would overwrite
 * the other.
 */
function assertNoneLeft(path: string): void {
  if (isInUse(path))
    throw refused("STORE_LOCKED", `There is no file at ${path}, but a process still has the one open that was there.`, {
      path,
    });
  if (sizeOf(`${path}-wal`) > 0)
    throw new ThroughlineError(
      "STORE_CORRUPT",
      `There is no file at ${path}, but its log is there; it was not changed.`,
      {
        outcome: "not-applied",
        details: { path },
        remedy: `Put the file back beside ${path}-wal, or move that away to begin a new store.`,
      },
    );
}
