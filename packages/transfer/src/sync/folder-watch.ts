import { type FSWatcher, statfsSync, watch } from "node:fs";
import { sep } from "node:path";
import process from "node:process";
import { fileFacts } from "../node/source-files.ts";

/** Reports that a file of a folder changed; null when the system does not name the file. */
type FolderListener = (folder: string, name: string | null) => void;

/**
 * Watches folders with one watch of the system each, never with what is below them: a recursive watch takes one watch a
 * file on Linux. A folder that cannot be watched is listed in `unwatched`, for a caller who looks at it from time to
 * time.
 */
export class FolderWatch implements Disposable {
  readonly #watches = new Map<string, FSWatcher>();
  readonly #listener: FolderListener;
  /** True after the system refused a watch, until `retry`: it would refuse every further one. */
  #isFull = false;
  /** Maps folders without a watch to the time of their last change that a look has seen, in milliseconds. */
  readonly unwatched: Map<string, number> = new Map();

  constructor(listener: FolderListener) {
    this.#listener = listener;
  }

  /** Watches a folder. A folder that is watched already stays as it is. */
  add(folder: string): void {
    if (this.#watches.has(folder)) return;
    if (this.#isFull || this.#watches.size >= mostWatches || isRemote(folder)) return this.#leave(folder);
    try {
      const watched = watch(folder, { persistent: true, recursive: false });
      watched.on("change", (_kind, name) => this.#listener(folder, typeof name === "string" ? name : null));
      watched.on("error", () => this.#drop(folder));
      this.#watches.set(folder, watched);
      this.unwatched.delete(folder);
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      // The folder was removed meanwhile, or never existed.
      if (code === "ENOENT" || code === "ENOTDIR") return;
      this.#isFull ||= code === "ENOSPC" || code === "EMFILE";
      this.#leave(folder);
    }
  }

  /** Ends the watches of a folder and of the folders below it. */
  remove(folder: string): void {
    for (const path of [...this.#watches.keys(), ...this.unwatched.keys()]) {
      if (path !== folder && !path.startsWith(`${folder}${sep}`)) continue;
      this.#watches.get(path)?.close();
      this.#watches.delete(path);
      this.unwatched.delete(path);
    }
  }

  /** Lets the next `add` of a folder without a watch ask the system again. */
  retry(): void {
    this.#isFull = false;
  }

  [Symbol.dispose](): void {
    for (const watched of this.#watches.values()) watched.close();
    this.#watches.clear();
  }

  #leave(folder: string): void {
    if (!this.unwatched.has(folder)) this.unwatched.set(folder, fileFacts(folder)?.modifiedMs ?? 0);
  }

  /** The system ends a watch when the folder is removed. Looks find out whether it comes back. */
  #drop(folder: string): void {
    this.#watches.get(folder)?.close();
    this.#watches.delete(folder);
    this.#leave(folder);
    this.#listener(folder, null);
  }
}

/** Other programs of the user need watches, too. */
const mostWatches = 4096;

/**
 * Numbers of file systems whose changes on another machine give no events: NFS, SMB in three versions, FUSE, 9P, Ceph,
 * AFS, and shared folders of two hypervisors.
 */
const remoteTypes: ReadonlySet<number> = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x00c36400, 0x5346414f, 0x786f4256, 0xbacbacbc,
]);

function isRemote(folder: string): boolean {
  if (process.platform !== "linux") return false;
  try {
    return remoteTypes.has(statfsSync(folder).type >>> 0);
  } catch {
    // The folder was removed meanwhile; the watch reports that.
    return false;
  }
}

/** Returns the file that a name in an event stands for: the log of a database stands for the database. */
export function changedName(name: string): string {
  return name.replace(/-(?:wal|shm|journal)$/, "");
}
