import { basename, join } from "node:path";
import { createFinding, refused } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";
import type { Finding } from "@throughline/core";
import { claim } from "./claim-file.ts";
import type { Connection, OpenOptions, SqliteDriver } from "./connection.ts";
import { openConnection } from "./open-connection.ts";
import { nativeCode } from "./sqlite-errors.ts";
import { databasePath } from "./file-facts.ts";
import {
  copyDatabase,
  isInUse,
  isThere,
  isWritable,
  makeTemporaryFolder,
  removeFolder,
  temporaryFoldersBeside,
  versionOf,
} from "./store-file.ts";

/**
 * Opens a store that cannot be written, to be read. SQLite must write beside a database with a log even to read it. So
 * this opens a private copy with the content of its log, and deletes the files of the copy before anything is read.
 * Null where that is not what is in the way, or somebody may be writing it.
 * @throws {ThroughlineError} STORE_READ_ONLY when there is no room for a copy, STORE_LOCKED while it is written without
 * a pause, CODEC_FAILED
 */
export function openUnwritable(options: OpenOptions, reason: ThroughlineError): Connection | null {
  const path = databasePath(options.path);
  if (isWritable(path) || !isThere(path) || isThere(`${path}-journal`) || isInUse(path)) return null;
  const copied = copyOf(options, path, reason);
  try {
    const connection = openConnection({ ...options, path: copied.path, create: false, recover: false });
    return {
      ...connection,
      isCopy: true,
      findings: connection.findings.map((finding) => ofOriginal(finding, path)),
      assertInPlace: () => {
        throw refused("STORE_READ_ONLY", `${path} or its folder cannot be written.`, { path }, reason);
      },
      assertCurrent: () => assertUnchanged(path, copied.version),
    };
  } finally {
    copied.remove();
  }
}

function copyOf({ driver }: OpenOptions, path: string, reason: ThroughlineError): CopyToRead {
  try {
    return copyToRead(path, driver);
  } catch (cause) {
    // Whoever writes the store is in the way, and no want of room.
    if (ThroughlineError.isInstance(cause)) throw cause;
    throw new ThroughlineError(
      "STORE_READ_ONLY",
      `${path} or its folder cannot be written, and not be copied to be read: ${textOf(cause)}`,
      {
        outcome: "not-applied",
        details: { path, reason: reason.message },
        cause,
        remedy:
          "Make room in the folder for temporary files, or copy the store with its -wal file to a disk that takes writes.",
      },
    );
  }
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Whoever may write it may do so while it is read here, which sees nothing of that. */
function assertUnchanged(path: string, version: string): void {
  if (versionOfDatabase(path) === version) return;
  throw new ThroughlineError(
    "STORE_READ_ONLY",
    `${path} was written by somebody else since it was opened to be read.`,
    {
      details: { path },
      remedy: "Open the store again to read what it holds now.",
    },
  );
}

/** What was kept of the copy's log went with the copy. */
function ofOriginal(finding: Finding, path: string): Finding {
  if (finding.code !== "LOG_DAMAGED") return finding;
  const message = `The log of ${path} is damaged before its end; what lies behind the damage is not shown.`;
  return createFinding("LOG_DAMAGED", message, { path });
}

/** How often a copy is started again: beside a writer without a pause no copy is made. */
const mostCopies = 5;

const folderStart = "throughline-read-";
/** Claimed by the process that made the folder, for as long as it lives. */
const claimName = "in-use";
/** A younger folder may have no claim yet, because its process claims it right after it creates it. */
const newMs = 60_000;

/** A private copy of a database, with what its log holds, in a folder of its own. */
interface CopyToRead {
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
        removeFolder(path);
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
function versionOfDatabase(path: string): string {
  return `${versionOf(path)}, ${versionOf(`${path}-wal`)}`;
}
