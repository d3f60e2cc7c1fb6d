import { basename, join } from "node:path";
import { causeText, createFinding, refused } from "@throughline/core/internal";
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
 * Opens a store that cannot be written, for reading. SQLite must write beside a database with a log even to read it. So
 * this function opens a private copy with the content of the log, and deletes the files of the copy before anything is
 * read. Returns null when writing is not the problem, or another process may be writing the store.
 * @throws {ThroughlineError} STORE_READ_ONLY when there is no room for a copy, STORE_LOCKED while it is written without
 *   a pause, CODEC_FAILED
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
    // The error of a store that is being written is not a lack of room.
    if (ThroughlineError.isInstance(cause)) throw cause;
    throw new ThroughlineError(
      "STORE_READ_ONLY",
      `${path} or its folder cannot be written, and not be copied to be read: ${causeText(cause)}`,
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

/** Another user may write the store while this process reads its copy. */
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

/** The damaged log was kept beside the copy and is deleted with it, so the finding names no file. */
function ofOriginal(finding: Finding, path: string): Finding {
  if (finding.code !== "LOG_DAMAGED") return finding;
  const message = `The log of ${path} is damaged before its end; what lies behind the damage is not shown.`;
  return createFinding("LOG_DAMAGED", message, { path });
}

/** Copying starts again at most so often, because beside a writer without a pause no copy succeeds. */
const mostCopies = 5;

const folderStart = "throughline-read-";
/** The process that creates the folder holds this claim as long as it lives. */
const claimName = "in-use";
/** A younger folder may have no claim yet, because its process claims it right after it creates it. */
const newMs = 60_000;

/** Names a private copy of a database with the content of its log, in a folder of its own. */
interface CopyToRead {
  readonly path: string;
  /** Identifies the version of the database that was copied. */
  readonly version: string;
  remove(): void;
}

/**
 * Copies a database, after it removes copies that killed processes left.
 * @throws {ThroughlineError} STORE_LOCKED while it is written without a pause, STORE_NOT_FOUND when it disappears
 * meanwhile, and
 *   the errors of the disk
 */
export function copyToRead(path: string, driver: SqliteDriver): CopyToRead {
  const folder = makeTemporaryFolder(folderStart);
  let release: ReturnType<typeof claim> = null;
  const remove = (): void => {
    // The claim is held to the end. Otherwise another process would take the folder for one that was left, and remove
    // it too.
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

/**
 * Returns false when a file disappeared during the copy. The log does so when its last user closes it, which changes
 * the database.
 */
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
 * Removes left copies of the same user with their content. Only the claim shows that a process has ended, because a
 * process id means nothing in another container that uses the folder.
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
      // Another process may be removing the folder, or it cannot be removed. Neither must prevent reading.
    }
  }
}

/** Returns a text that changes whenever the database or its log is written. */
function versionOfDatabase(path: string): string {
  return `${versionOf(path)}, ${versionOf(`${path}-wal`)}`;
}
