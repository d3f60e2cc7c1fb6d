import type { Files } from "./files.ts";

/** Changed names are forgotten beyond this many: the poll finds them. */
const mostNames = 10_000;

interface Followed {
  count: number;
  /** Null where the file system reports nothing. */
  readonly stop: (() => void) | null;
}

/**
 * What the kernel reports of changes in folders of transcripts: a hint that makes watches quick and the poll cheap. Nothing
 * depends on it: an event may be lost, and some file systems report none.
 */
export class FolderEvents {
  readonly #files: Files;
  readonly #folders = new Map<string, Followed>();
  readonly #onChange: (path: string) => void;
  #changed = new Set<string>();

  constructor(files: Files, onChange: (path: string) => void) {
    this.#files = files;
    this.#onChange = onChange;
  }

  /** Whether changes are reported in every folder that is followed. */
  get isComplete(): boolean {
    return this.#folders.values().every(({ stop }) => stop !== null);
  }

  /** Follows a folder until the function it gives is called. */
  follow(folder: string): () => void {
    const known = this.#folders.get(folder) ?? { count: 0, stop: this.#begin(folder) };
    known.count++;
    this.#folders.set(folder, known);
    return () => {
      if (--known.count > 0 || this.#folders.get(folder) !== known) return;
      known.stop?.();
      this.#folders.delete(folder);
    };
  }

  /** The paths that changed since this was asked. */
  take(): ReadonlySet<string> {
    const changed = this.#changed;
    if (changed.size > 0) this.#changed = new Set();
    return changed;
  }

  /** Follows nothing any more. */
  end(): void {
    for (const { stop } of this.#folders.values()) stop?.();
    this.#folders.clear();
  }

  #begin(folder: string): (() => void) | null {
    try {
      // Another machine's changes are not reported here.
      if (this.#files.followFolder === undefined || this.#files.fileSystem(folder) !== "local") return null;
      return this.#files.followFolder(folder, (name) => {
        const path = `${folder}/${name}`;
        if (this.#changed.size < mostNames) this.#changed.add(path);
        this.#onChange(path);
      });
    } catch {
      // No descriptor or no kernel memory is left: the poll does without.
      return null;
    }
  }
}
