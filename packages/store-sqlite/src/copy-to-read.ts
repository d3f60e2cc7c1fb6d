import { refused } from "@throughline/core/store";
import { basename, join } from "node:path";
import { claim } from "./claim-file.ts";
import type { SqliteDriver } from "./sqlite-driver.ts";
import { nativeCode } from "./sqlite-errors.ts";
import {
  copyDatabase,
  isThere,
  makeTemporaryFolder,
  removeFolder,
  temporaryFoldersBeside,
  versionOf,
} from "./store-file.ts";

/** How often a copy is started again: beside a writer without a pause no copy is made. */
const mostCopies = 5;

const folderStart = "throughline-read-";
/** Claimed by the process that made the folder, for as long as it lives. */
const claimName = "in-use";
/** A folder in which nothing is claimed yet, because it has just been made. */
const newMs = 60_000;
/** One in which nothing was ever claimed is of an earlier version, whose copies did not take so long. */
const abandonedMs = 24 * 60 * 60 * 1000;

/** A private copy of a database, with what its log holds, in a folder of its own. */
export interface CopyToRead {
  readonly path: string;
  /** Identifies the version of the copy. */
  readonly version: string;
  /** Takes its files away. */
  remove(): void;
}

/**
 * Copies a database. What a process that was killed meanwhile has left of such a copy is removed first.
 * @throws {ThroughlineError} STORE_LOCKED while it is written without a pause, STORE_NOT_FOUND when it goes meanwhile; and
 *   what the disk says
 */
export function copyToRead(path: string, driver: SqliteDriver): CopyToRead {
  const folder = makeTemporaryFolder(folderStart);
  let release: ReturnType<typeof claim> = null;
  const remove = (): void => {
    // Under the claim to the end: else it would be taken for one that was left, and removed by two.
    removeFolder(folder);
    release?.();
  };
  try {
    release = claim(join(folder, claimName), driver);
    removeLeftovers(folder, driver);
    const copy = join(folder, basename(path));
    for (let attempt = 0; attempt < mostCopies; attempt++) {
      const version = versionOfDatabase(path);
      if (isCopied(path, copy) && versionOfDatabase(path) === version) return { path: copy, version, remove };
    }
    throw refused("STORE_LOCKED", `${path} is written without a pause and cannot be copied.`, { path });
  } catch (error) {
    remove();
    throw error;
  }
}

/** False when a file went while it was copied: so does the log when its last user closes it, having changed the database. */
function isCopied(path: string, copy: string): boolean {
  try {
    copyDatabase(path, copy);
    return true;
  } catch (error) {
    if (nativeCode(error) !== "ENOENT") throw error;
    if (!isThere(path)) throw refused("STORE_NOT_FOUND", `There is no store at ${path} any more.`, { path }, error);
    return false;
  }
}

/**
 * Removes what is left of copies of the same user, content and all. Its claim shows that its process has ended, because
 * a process id means nothing in another container that uses the same folder.
 */
function removeLeftovers(own: string, driver: SqliteDriver): void {
  for (const { path, olderByMs } of temporaryFoldersBeside(own, folderStart)) {
    if (olderByMs < newMs) continue;
    try {
      const claimed = join(path, claimName);
      if (!isThere(claimed)) {
        if (olderByMs > abandonedMs) removeFolder(path);
        continue;
      }
      const release = claim(claimed, driver);
      if (release === null) continue;
      removeFolder(path);
      release();
    } catch {
      // Somebody else is at it, or it cannot be removed: no reason to keep anybody from reading.
    }
  }
}

/** Another text whenever the database or its log was written. */
export function versionOfDatabase(path: string): string {
  return `${versionOf(path)}, ${versionOf(`${path}-wal`)}`;
}
