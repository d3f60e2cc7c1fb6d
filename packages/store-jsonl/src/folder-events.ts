import type { Files } from "./files.ts";

/** Limits the memory for changed names. The poll finds files whose names were dropped. */
const mostNames = 10_000;

interface Followed {
  count: number;
  readonly stop: (() => void) | null;
}

/**
 * Collects the kernel's reports of changes in the transcripts' folders. They make watches fast and the poll cheap.
 * Nothing may depend on them: an event may be lost, and some file systems report none.
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

  get isComplete(): boolean {
    return this.#folders.values().every(({ stop }) => stop !== null);
  }

  /** Follows a folder until the returned function is called. */
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

  take(): ReadonlySet<string> {
    const changed = this.#changed;
    if (changed.size > 0) this.#changed = new Set();
    return changed;
  }

  end(): void {
    for (const { stop } of this.#folders.values()) stop?.();
    this.#folders.clear();
  }

  #begin(folder: string): (() => void) | null {
    try {
      // The kernel does not report changes by other machines, so only a local folder is followed.
      if (this.#files.followFolder === undefined || this.#files.fileSystem(folder) !== "local") return null;
      return this.#files.followFolder(folder, (name) => {
        const path = `${folder}/${name}`;
        if (this.#changed.size < mostNames) this.#changed.add(path);
        this.#onChange(path);
      });
    } catch {
      // No descriptor or kernel memory is left, so only the poll finds changes.
      return null;
    }
  }
}
