import { createFinding, ThroughlineError, type Finding } from "@throughline/core";
import { refused } from "@throughline/core/store";
import { openConnection, type Connection, type OpenOptions } from "./open-connection.ts";
import { copyToRead, versionOfDatabase, type CopyToRead } from "./copy-to-read.ts";
import { databasePath } from "./database-path.ts";
import { isInUse, isThere, isWritable } from "./store-file.ts";

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
