import * as fs from "node:fs";
import { platform } from "node:process";

/** What is asked of a file before it is trusted. */
export interface FileFacts {
  /** Device and inode: the same text means the same file, whatever its name is by now. */
  readonly identity: string;
  /** The size, in bytes. */
  readonly sizeBytes: number;
  /** The time of the last change, in nanoseconds since 1970. */
  readonly modifiedNs: bigint;
  /** What it is; `other` stands for links, devices and sockets. */
  readonly kind: "file" | "folder" | "other";
  /** How many names it has: a second one may lie anywhere on the same file system. */
  readonly names: number;
  /** Nobody but its owner may look into it. */
  readonly isPrivate: boolean;
}

/** Whether a file system is this computer's alone. */
export type FileSystemKind = "local" | "network" | "unknown";

/**
 * `append`: an existing file, also readable. `create`: as append, but the file must not exist. `read`: reading only.
 * `rewrite`: an existing file, for `writeAt`.
 */
export type OpenMode = "append" | "create" | "read" | "rewrite";

/**
 * Everything the store asks of the file system. Each call does one thing, so that a test can count calls and bytes
 * and let any of them fail. No call follows a symbolic link in the last part of its path.
 */
export interface Files {
  /** Opens a file and gives its handle. */
  open(path: string, mode: OpenMode): number;
  /** Closes a handle. */
  close(handle: number): void;
  /** Null when there is nothing of this name. */
  facts(path: string): FileFacts | null;
  /** The facts of an open file. */
  factsOf(handle: number): FileFacts;
  /** How many bytes were read; 0 at the end. */
  read(handle: number, into: Uint8Array, position: number): number;
  /** How many bytes were written: fewer than given when the disk fills up. */
  write(handle: number, bytes: Uint8Array): number;
  /** As `write`, at a place in a file that is open to `rewrite`. */
  writeAt(handle: number, bytes: Uint8Array, position: number): number;
  /** Cuts an open file to this size, in bytes. */
  truncate(handle: number, sizeBytes: number): void;
  /** Resolves when the file's data are on the disk. */
  flush(handle: number): Promise<void>;
  /** As `flush`, and returns when the data are on the disk. */
  flushNow(handle: number): void;
  /** Returns when the names in the folder are on the disk. */
  flushFolder(path: string): void;
  /** Makes the folder with mode 0700 unless it exists. */
  makeFolder(path: string): void;
  /** Takes a folder's access away from everybody but its owner. */
  makePrivate(path: string): void;
  /** What the kernel calls an open file by now, with no link in it; null where it does not tell. */
  whereIs(handle: number): string | null;
  /** The names in a folder, in no order. */
  names(path: string): readonly string[];
  /** Gives a file another name, and replaces a file of that name. */
  rename(from: string, to: string): void;
  /** Removes a file. */
  remove(path: string): void;
  /** Removes a folder when there is nothing in it. */
  removeFolder(path: string): void;
  /** Whose file system a folder is on. "unknown" where the kernel names one that may be either. */
  fileSystem(path: string): FileSystemKind;
  /** Whether this process may write there. */
  isWritable(path: string): boolean;
  /** The path without links. */
  realPath(path: string): string;
  /**
   * Reports the names that change in a folder until the function it gives is called; it keeps no process alive. Null where
   * the system does not report appends to files. Absent where a caller's file system reports nothing.
   */
  followFolder?(path: string, onChange: (name: string) => void): (() => void) | null;
}

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDONLY, O_RDWR } = fs.constants;
const flags: Readonly<Record<OpenMode, number>> = {
  append: O_RDWR | O_APPEND | O_NOFOLLOW,
  create: O_RDWR | O_APPEND | O_NOFOLLOW | O_CREAT | O_EXCL,
  // Without O_NONBLOCK a named pipe in the folder would hold the process for ever.
  read: O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
  rewrite: O_RDWR | O_NOFOLLOW,
};

/** `f_type` of statfs on Linux, of file systems on a disk or in the memory of this computer. */
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
 * The same of file systems that other machines have too: NFS, SMB (three), 9P, AFS (two), Ceph, Lustre, GFS2, OCFS2,
 * VirtualBox. What is in neither list may be anything: behind FUSE there is a disk, or somebody's cloud.
 */
const networkTypes: ReadonlySet<number> = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x01021997, 0x5346414f, 0x6b414653, 0x00c36400, 0x0bd00bd0, 0x01161970,
  0x7461636f, 0x786f4256,
]);

/** The file system of this computer. */
export const nodeFiles: Files = {
  open(path, mode) {
    const handle = fs.openSync(path, flags[mode], 0o600);
    // The mode given to open passes through the umask; this one does not.
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
      // Without /proc, as in some containers: then the folder is looked at.
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
    // The folder was removed: nothing is left to report.
    watcher.on("error", () => watcher.close());
    return () => watcher.close();
  },
};

function kindOfType(type: number): FileSystemKind {
  // Other systems number theirs as they please, and the lists would call every disk unknown.
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
    // Windows has no such bits, and lists instead that are inherited from the user's folder.
    isPrivate: platform === "win32" || (stats.mode & 0o077n) === 0n,
  };
}
