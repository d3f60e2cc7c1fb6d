import { ThroughlineError } from "@throughline/core";
import { quote } from "@throughline/core/internal";
import { isOutOfDescriptors } from "./descriptor-room.ts";
import { folderOf, isMissing } from "./file-work.ts";
import type { Files } from "./files.ts";

interface Opened {
  readonly path: string;
  /** Identifies the folder at the time of opening. It is null where the kernel reports the path of an open file. */
  readonly folderIdentity: string | null;
  /** Is true when the file has a second name, which may be outside the root. Writes would change that file too. */
  readonly hasOtherName: boolean;
}

/**
 * Confines the files of a store to its root, which must not be a symbolic link. A file below the root must lie where
 * its path says, without a link on the way. Only such files are written. A folder that is replaced by a link while the
 * store is open is refused. The check costs one system call per write, which asks for the path of the open file.
 *
 * Names are created, changed and removed after a check of their folder. A replacement of the folder between check and
 * call can misplace one name. It cannot misplace content, because opened files are checked after they are opened.
 *
 * `makeRoom` closes files that are not in use. When the process has no descriptor left, the call is repeated after it.
 */
export function containedFiles(files: Files, root: string, makeRoom: () => void): Files {
  return new ContainedFiles(withRoom(files, makeRoom), root).port;
}

/**
 * Keeps one spare descriptor for each `Files`. Calls that need a descriptor briefly use it, because they cannot wait
 * for a running flush. It is open on "/", because that cannot be unmounted.
 */
const spares = new WeakMap<Files, number>();

function keepSpare(files: Files): void {
  if (spares.has(files)) return;
  try {
    spares.set(files, files.open("/", "read"));
  } catch {
    // There is no free descriptor; the next open tries again.
  }
}

function giveSpare(files: Files): void {
  const spare = spares.get(files);
  if (spare !== undefined) files.close(spare);
  spares.delete(files);
}

function withRoom(files: Files, makeRoom: () => void): Files {
  const orElse = <T>(work: () => T, otherwise: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (!isOutOfDescriptors(error)) throw error;
      return otherwise();
    }
  };
  const again = <T>(work: () => T): T =>
    orElse(work, () => {
      makeRoom();
      return work();
    });
  const briefly = <T>(work: () => T): T =>
    orElse(
      () => again(work),
      () => {
        giveSpare(files);
        try {
          return work();
        } finally {
          keepSpare(files);
        }
      },
    );
  return {
    ...files,
    open: (path, mode) => {
      keepSpare(files);
      return again(() => files.open(path, mode));
    },
    flushFolder: (path) => briefly(() => files.flushFolder(path)),
    flushFolderLater: (path) => briefly(() => files.flushFolderLater(path)),
    names: (path) => briefly(() => files.names(path)),
  };
}

class ContainedFiles {
  readonly port: Files;
  readonly #files: Files;
  readonly #root: string;
  #realRoot: string | null = null;
  readonly #opened: Map<number, Opened> = new Map();

  constructor(files: Files, root: string) {
    this.#files = files;
    this.#root = root;
    this.port = {
      ...files,
      open: (path, mode) => this.#open(path, mode),
      close: (handle) => {
        this.#opened.delete(handle);
        files.close(handle);
      },
      write: (handle, bytes) => {
        this.#assertWritable(handle);
        return files.write(handle, bytes);
      },
      writeAt: (handle, bytes, position) => {
        this.#assertWritable(handle);
        return files.writeAt(handle, bytes, position);
      },
      makeFolder: (path) => {
        this.#assertFolderOf(path);
        files.makeFolder(path);
      },
      makePrivate: (path) => {
        this.#assertFolderOf(path);
        files.makePrivate(path);
      },
      rename: (from, to) => {
        for (const path of new Set([folderOf(from), folderOf(to)])) this.#assertPlace(path);
        files.rename(from, to);
      },
      remove: (path) => {
        this.#assertFolderOf(path);
        files.remove(path);
      },
      removeFolder: (path) => {
        this.#assertFolderOf(path);
        files.removeFolder(path);
      },
      realPath: (path) => this.#assertPlace(path) ?? files.realPath(path),
    };
  }

  #open(path: string, mode: Parameters<Files["open"]>[1]): number {
    const files = this.#files;
    if (!this.#isBelow(path)) return files.open(path, mode);
    this.#rootNow();
    const handle = files.open(path, mode);
    try {
      const folder = folderOf(path);
      const where = files.whereIs(handle);
      if (where === null) this.#assertPlace(folder);
      else this.#assertSame(path, folderOf(where));
      const hasOtherName = (mode === "append" || mode === "rewrite") && files.factsOf(handle).names > 1;
      const folderIdentity = where === null ? (files.facts(folder)?.identity ?? "") : null;
      this.#opened.set(handle, { path, folderIdentity, hasOtherName });
      return handle;
    } catch (error) {
      files.close(handle);
      // This call created the file, so it may remove it.
      if (mode === "create") files.remove(path);
      throw error;
    }
  }

  #assertWritable(handle: number): void {
    const opened = this.#opened.get(handle);
    if (opened === undefined) return;
    const { path, folderIdentity, hasOtherName } = opened;
    if (hasOtherName)
      throw unsafe(
        path,
        "is a file with a second name, where it would be written too; copy it to make it one of its own",
      );
    const where = folderIdentity === null ? this.#files.whereIs(handle) : null;
    if (where !== null) this.#assertSame(path, folderOf(where));
    else if (folderIdentity === null || this.#files.facts(folderOf(path))?.identity !== folderIdentity)
      throw unsafe(path, "is in another folder than when it was opened");
  }

  #assertFolderOf(path: string): void {
    if (this.#isBelow(path)) this.#assertPlace(folderOf(path));
  }

  /**
   * Returns the real path of something at or below the root, or null for a path elsewhere. A missing path passes,
   * because the following call reports it.
   */
  #assertPlace(path: string): string | null {
    if (path !== this.#root && !this.#isBelow(path)) return null;
    if (this.#rootNow() === null) return null;
    try {
      const real = this.#files.realPath(path);
      this.#assertSame(`${path}/`, real);
      return real;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  #assertSame(path: string, realFolder: string): void {
    const expected = `${this.#realRoot ?? this.#rootNow() ?? ""}${folderOf(path).slice(this.#root.length)}`;
    if (realFolder !== expected)
      throw unsafe(
        path,
        `leads to ${quote(realFolder)}, and not into ${quote(expected)}: a link is on the way, or a folder was moved`,
      );
  }

  /** Returns the real path of the root; null while the root does not exist. */
  #rootNow(): string | null {
    if (this.#realRoot !== null) return this.#realRoot;
    const facts = this.#files.facts(this.#root);
    if (facts === null) return null;
    if (facts.kind !== "folder")
      throw unsafe(this.#root, "is a link or a file where the store's folder belongs; name the folder itself");
    return (this.#realRoot = this.#files.realPath(this.#root));
  }

  #isBelow(path: string): boolean {
    return path.startsWith(this.#root === "/" ? "/" : `${this.#root}/`);
  }
}

function unsafe(path: string, what: string): ThroughlineError {
  return new ThroughlineError("PATH_UNSAFE", `${quote(path)} ${what}.`, { outcome: "not-applied", details: { path } });
}
