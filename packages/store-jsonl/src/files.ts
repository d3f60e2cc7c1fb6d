import * as fs from "node:fs";
import { platform } from "node:process";

/** Holds the facts of a file that the store checks before it trusts the file. */
export interface FileFacts {
  /** Identifies the file by device and inode: the same text means the same file, even after a rename. */
  readonly identity: string;
  /** States the size, in bytes. */
  readonly sizeBytes: number;
  /** States the time of the last change, in nanoseconds since 1970. */
  readonly modifiedNs: bigint;
  /** States the kind; `other` stands for links, devices and sockets. */
  readonly kind: "file" | "folder" | "other";
  /** Counts the names of the file. A second name may lie anywhere on the same file system. */
  readonly names: number;
  /** States whether only the owner has access. */
  readonly isPrivate: boolean;
}

/** States whether a file system belongs to this computer alone. */
export type FileSystemKind = "local" | "network" | "unknown";

/**
 * Selects how a file is opened.
 * `append`: an existing file, also readable.
 * `create`: as append, but the file must not exist.
 * `read`: reading only.
 * `rewrite`: an existing file, for `writeAt`.
 */
export type OpenMode = "append" | "create" | "read" | "rewrite";

/**
 * Provides the file system operations of the store. Each call does one thing, so that a test can count calls and bytes
 * and let any of them fail. No call follows a symbolic link in the last part of its path.
 */
export interface Files {
  /** Opens a file and returns its handle. */
  open(path: string, mode: OpenMode): number;
  /** Closes a handle. */
  close(handle: number): void;
  /** Returns the facts of a path, or null when nothing has this name. */
  facts(path: string): FileFacts | null;
  /** Returns the facts of an open file. */
  factsOf(handle: number): FileFacts;
  /** Reads into the buffer and returns the number of bytes; 0 at the end of the file. */
  read(handle: number, into: Uint8Array, position: number): number;
  /** Appends bytes and returns how many were written. The number is smaller than given when the disk fills up. */
  write(handle: number, bytes: Uint8Array): number;
  /** Writes bytes at a position in a file that is open to `rewrite`. Returns the same as `write`. */
  writeAt(handle: number, bytes: Uint8Array, position: number): number;
  /** Truncates an open file to this size, in bytes. */
  truncate(handle: number, sizeBytes: number): void;
  /** Resolves when the file's data are on the disk. */
  flush(handle: number): Promise<void>;
  /** Does the same as `flush`, but returns only when the data are on the disk. */
  flushNow(handle: number): void;
  /** Flushes the names in a folder, and returns when they are on the disk. */
  flushFolder(path: string): void;
  /** Does the same as `flushFolder`, and resolves when the names are on the disk. */
  flushFolderLater(path: string): Promise<void>;
  /** Creates the folder with mode 0700 unless it exists. */
  makeFolder(path: string): void;
  /** Removes all access to a folder except its owner's. */
  makePrivate(path: string): void;
  /** Returns the kernel's current path of an open file, without links; null when the kernel does not report it. */
  whereIs(handle: number): string | null;
  /** Lists the names in a folder, in no particular order. */
  names(path: string): readonly string[];
  /** Renames a file, and replaces a file that has the new name. */
  rename(from: string, to: string): void;
  /** Removes a file. */
  remove(path: string): void;
  /** Removes a folder if it is empty. */
  removeFolder(path: string): void;
  /** Returns the kind of the file system that a folder is on; "unknown" when the type may be either. */
  fileSystem(path: string): FileSystemKind;
  /** Returns whether this process may write to the path. */
  isWritable(path: string): boolean;
  /** Returns the path without links. */
  realPath(path: string): string;
  /**
   * Reports the names that change in a folder until the returned function is called. It does not keep the process
   * alive. Returns null where the system does not report appends to files. The member is absent when a custom file
   * system reports nothing.
   */
  followFolder?(path: string, onChange: (name: string) => void): (() => void) | null;
}

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY, O_RDWR } = fs.constants;
const flags: Readonly<Record<OpenMode, number>> = {
  append: O_RDWR | O_APPEND | O_NOFOLLOW,
  create: O_RDWR | O_APPEND | O_NOFOLLOW | O_CREAT | O_EXCL,
  // Without O_NONBLOCK, opening a named pipe in the folder would block the process forever.
  read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  rewrite: O_RDWR | O_NOFOLLOW,
};

/** These values of `f_type` stand for file systems on a local disk or in memory. Linux returns them from statfs. */
const localTypes: ReadonlySet<number> = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // XFS
  0x9123683e, // btrfs
  0x2fc12fc1, // ZFS
  0xca451a4e, // bcachefs
  0xf2f52010, // F2FS
  0x01021994, // tmpfs
  0x858458f6, // ramfs
  0x794c7630, // overlayfs
  0x61756673, // aufs
  0xf15f, // eCryptfs
  0x3153464a, // JFS
  0x52654973, // ReiserFS
  0x3434, // NILFS
  0x24051905, // UBIFS
  0x72b6, // JFFS2
  0x5346544e, // NTFS
  0x7366746e, // NTFS, the newer driver
  0x2011bab0, // exFAT
  0x4d44, // FAT
  0x4244, // HFS
  0x482b, // HFS+
]);

/**
 * These values stand for file systems that other machines share: NFS, SMB (three), 9P, AFS (two), Ceph, Lustre, GFS2,
 * OCFS2, VirtualBox. A type in neither list is unknown: FUSE, for example, may serve a local disk or a cloud.
 */
const networkTypes: ReadonlySet<number> = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x01021997, 0x5346414f, 0x6b414653, 0x00c36400, 0x0bd00bd0, 0x01161970,
  0x7461636f, 0x786f4256,
]);

/** Provides the file system of this computer through `node:fs`. */
export const nodeFiles: Files = {
  open(path, mode) {
    const handle = fs.openSync(path, flags[mode], 0o600);
    // The mode given to open is reduced by the umask; fchmod is not.
    if (mode === "create") fs.fchmodSync(handle, 0o600);
    return handle;
  },
  close: (handle) => fs.closeSync(handle),
  facts(path) {
    const stats = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stats === undefined ? null : factsFrom(stats);
  },
  factsOf: (handle) => factsFrom(fs.fstatSync(handle, { bigint: true })),
  read: (handle, into, position) => fs.readSync(handle, into, 0, into.length, position),
  write: (handle, bytes) => fs.writeSync(handle, bytes, 0, bytes.length, null),
  writeAt: (handle, bytes, position) => fs.writeSync(handle, bytes, 0, bytes.length, position),
  truncate: (handle, sizeBytes) => fs.ftruncateSync(handle, sizeBytes),
  flush: (handle) =>
    new Promise((resolve, reject) => {
      fs.fdatasync(handle, (error) => (error === null ? resolve() : reject(error)));
    }),
  flushNow: (handle) => fs.fsyncSync(handle),
  flushFolder(path) {
    const handle = fs.openSync(path, O_RDONLY);
    try {
      fs.fsyncSync(handle);
    } finally {
      fs.closeSync(handle);
    }
  },
  flushFolderLater(path) {
    const handle = fs.openSync(path, O_RDONLY);
    return new Promise<void>((resolve, reject) => {
      fs.fsync(handle, (error) => (error === null ? resolve() : reject(error)));
    }).finally(() => fs.closeSync(handle));
  },
  makeFolder(path) {
    try {
      fs.mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return;
      throw error;
    }
    fs.chmodSync(path, 0o700);
  },
  makePrivate: (path) => fs.chmodSync(path, 0o700),
  whereIs(handle) {
    if (platform !== "linux") return null;
    try {
      return fs.readlinkSync(`/proc/self/fd/${handle}`);
    } catch {
      // Some containers have no /proc. The caller then checks the folder instead.
      return null;
    }
  },
  names: (path) => fs.readdirSync(path),
  rename: (from, to) => fs.renameSync(from, to),
  remove: (path) => fs.rmSync(path, { force: true }),
  removeFolder(path) {
    try {
      fs.rmdirSync(path);
    } catch (error) {
      if (!["ENOENT", "ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  },
  fileSystem: (path) => kindOfType(fs.statfsSync(path).type >>> 0),
  isWritable(path) {
    try {
      fs.accessSync(path, fs.constants.W_OK);
      return true;
    } catch {
      return false;
    }
  },
  realPath: (path) => fs.realpathSync(path),
  followFolder(path, onChange) {
    if (platform !== "linux") return null;
    const watcher = fs.watch(path, { persistent: false }, (_event, name) => {
      if (name !== null) onChange(name);
    });
    // The folder was removed, so nothing is left to report.
    watcher.on("error", () => watcher.close());
    return () => watcher.close();
  },
};

function kindOfType(type: number): FileSystemKind {
  // Other systems use other numbers, and these lists would call every disk unknown.
  if (platform !== "linux" || localTypes.has(type)) return "local";
  return networkTypes.has(type) ? "network" : "unknown";
}

function factsFrom(stats: fs.BigIntStats): FileFacts {
  return {
    identity: `${stats.dev}:${stats.ino}`,
    sizeBytes: Number(stats.size),
    modifiedNs: stats.mtimeNs,
    kind: stats.isFile() ? "file" : stats.isDirectory() ? "folder" : "other",
    names: Number(stats.nlink),
    // Windows has no such bits. Its files inherit access lists from the user's folder.
    isPrivate: platform === "win32" || (stats.mode & 0o077n) === 0n,
  };
}
