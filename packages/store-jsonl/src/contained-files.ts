import { ThroughlineError } from "@throughline/core";
import { quote } from "@throughline/core/internal";
import { isOutOfDescriptors } from "./descriptor-room.ts";
import { folderOf, isMissing } from "./file-work.ts";
import type { Files } from "./files.ts";

/** A file below the root that is open. */
interface Opened {
  readonly path: string;
  /** Of the folder it was opened in, where the kernel does not say what an open file is called. */
  readonly folderIdentity: string | null;
  /** It has a second name, maybe outside of the root: what is written to it would be there too. */
  readonly hasOtherName: boolean;
}

/**
 * The files of a store, held inside its root, which is no symbolic link itself. A file below the root must lie where
 * its path says, without a link on the way, and writes go there only. A folder that is replaced by a link while the
 * store is open is refused. That costs a write one look, at what the kernel calls the open file.
 *
 * Names are made, changed and removed after a look at the folder they are in. Who replaces it in the moment between
 * gets one name wrong, and no text: that is in files that were opened, and those are looked at afterwards.
 *
 * `makeRoom`: lets go of files that are not in use. Where the process has no descriptor left, it is tried again then.
 */
export function containedFiles(files: Files, root: string, makeRoom: () => void): Files {
  return new ContainedFiles(withRoom(files, makeRoom), root).port;
}

/**
 * A descriptor that a process keeps for calls which need one for a moment only, and which a flush under way cannot wait for. Of
 * a folder that nobody unmounts.
 */
const spares = new WeakMap<Files, number>();

function keepSpare(files: Files): void {
  if (spares.has(files)) return;
  try {
    spares.set(files, files.open("/", "read"));
  } catch {
    // There is no room: it is tried again with the next file.
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
        // Those of OpenClaw are removed after every write, and were looked at when they were made, for that write.
        if (!path.endsWith(".lock")) this.#assertFolderOf(path);
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
      // It was made a moment ago, by us.
      if (mode === "create") files.remove(path);
      throw error;
    }
  }

  /** One look: at the name of the open file, or where the kernel has none for it, at the folder. */
  #assertWritable(handle: number): void {
    const opened = this.#opened.get(handle);
    if (opened === undefined || opened.path.endsWith(".lock")) return;
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

  /** The folder of a path is where the path says. */
  #assertFolderOf(path: string): void {
    if (this.#isBelow(path)) this.#assertPlace(folderOf(path));
  }

  /** The real path of something at or below the root; null for what is elsewhere. A path to nothing passes: what follows will say so. */
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

  /** That a folder is the one which a path below the root names. */
  #assertSame(path: string, realFolder: string): void {
    const expected = `${this.#rootNow() ?? ""}${folderOf(path).slice(this.#root.length)}`;
    if (realFolder !== expected)
      throw unsafe(
        path,
        `leads to ${quote(realFolder)}, and not into ${quote(expected)}: a link is on the way, or a folder was moved`,
      );
  }

  /** Null while there is none. */
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
