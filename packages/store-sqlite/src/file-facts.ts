import { resolve } from "node:path";
import { refused } from "@throughline/core/internal";

/** Holds the facts from the first bytes of a file. */
export interface FileHeader {
  readonly isEmpty: boolean;
  readonly isSqlite: boolean;
  readonly applicationId: number;
  readonly userVersion: number;
  /** False for a file without a log that ends within a page, because SQLite would read zeros behind the end. */
  readonly isWhole: boolean;
}

/** Reads the facts from the first hundred bytes of a file, of which `length` are there. */
export function headerOf(bytes: Buffer, length: number): Omit<FileHeader, "isWhole"> {
  return {
    isEmpty: length === 0,
    isSqlite: length === 100 && bytes.toString("latin1", 0, 16) === "SQLite format 3\0",
    applicationId: bytes.readUInt32BE(68),
    userVersion: bytes.readUInt32BE(60),
  };
}

/** Numbers of file systems that reach over a network, as Linux gives them. */
const remoteFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB"],
  [0xff534d42, "CIFS"],
  [0x01021997, "9P"],
  [0x65735546, "FUSE"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x0bd00bd0, "Lustre"],
  [0x7461636f, "OCFS2"],
  [0x01161970, "GFS2"],
  [0x786f4256, "a folder shared with a virtual machine's host"],
]);

/** Returns the name of a file system that is or may be remote, or null. */
export function remoteFileSystem(type: number): string | null {
  return remoteFileSystems.get(type >>> 0) ?? null;
}

/**
 * Returns the path for SQLite.
 * @throws {ThroughlineError} PATH_UNSAFE for a path that the driver would read as another name
 */
export function databasePath(path: string): string {
  const full = resolve(path);
  if (full !== full.trim() || full.includes("\0"))
    throw refused("PATH_UNSAFE", `The path ${JSON.stringify(path)} ends with white space.`, { path });
  return full;
}
