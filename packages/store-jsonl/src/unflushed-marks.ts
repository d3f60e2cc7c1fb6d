import type { AgentFolder } from "./agent-folder.ts";
import { fileError, readWhole } from "./file-work.ts";
import type { Files } from "./files.ts";

export interface DoubtfulBytes {
  readonly identity: string;
  readonly from: number;
}

/**
 * Marks files whose flush failed for every process that writes to them. The kernel reports the failure only to
 * processes that had the file open. In other processes a later flush succeeds without the bytes. A mark is
 * `throughline/unflushed/<device>-<inode>`, and holds the first doubtful position. It need not survive a power cut:
 * what the file contains after one is on the disk.
 */
export class UnflushedMarks {
  readonly #files: Files;
  readonly #folder: string;

  constructor(files: Files, { unflushed }: Pick<AgentFolder, "unflushed">) {
    this.#files = files;
    this.#folder = unflushed;
  }

  /** Marks bytes. A failing disk may refuse this too, and then only this process remembers. */
  note({ identity, from }: DoubtfulBytes): void {
    const path = this.#pathOf(identity);
    try {
      const earlier = this.find(identity)?.from ?? from;
      this.#files.makeFolder(this.#folder);
      this.#files.remove(path);
      const handle = this.#files.open(path, "create");
      try {
        this.#files.write(handle, Buffer.from(`${Math.min(from, earlier)}\n`));
      } finally {
        this.#files.close(handle);
      }
    } catch {
      // The error is dropped, because the caller reports the failed flush.
    }
  }

  /** Returns the doubtful bytes of a file, or null. It costs one system call while no file of the agent is marked. */
  find(identity: string): DoubtfulBytes | null {
    try {
      if (this.#files.facts(this.#folder) === null) return null;
    } catch (error) {
      throw fileError(error, this.#folder);
    }
    const bytes = readWhole(this.#files, this.#pathOf(identity));
    if (bytes === null) return null;
    const from = Number.parseInt(Buffer.from(bytes).toString(), 10);
    return { identity, from: Number.isSafeInteger(from) && from > 0 && bytes.at(-1) === 0x0a ? from : 0 };
  }

  clear(identity: string): void {
    if (this.#files.facts(this.#folder) === null) return;
    this.#files.remove(this.#pathOf(identity));
    this.#files.removeFolder(this.#folder);
  }

  #pathOf(identity: string): string {
    return `${this.#folder}/${identity.replace(":", "-")}`;
  }
}
