import type { AgentFolder } from "./agent-folder.ts";
import { readWhole } from "./file-work.ts";
import type { Files } from "./files.ts";

/** Bytes whose flush failed. */
export interface DoubtfulBytes {
  /** Of the file. */
  readonly identity: string;
  readonly from: number;
}

/**
 * Files whose flush failed, for every process that writes to them: the kernel reports it only to those that had the
 * file open. For others a later flush succeeds without the bytes. A mark is `throughline/unflushed/<device>-<inode>`,
 * and holds the place from which on the bytes are in doubt. It need not survive a power cut: what is in the file then
 * is on the disk.
 */
export class UnflushedMarks {
  readonly #files: Files;
  readonly #folder: string;

  constructor(files: Files, { unflushed }: Pick<AgentFolder, "unflushed">) {
    this.#files = files;
    this.#folder = unflushed;
  }

  /** Marks bytes. A disk that fails may refuse this too: then only this process knows. */
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
      // There is nobody to be told: the caller gets the error of the flush.
    }
  }

  /** The uncertain bytes of a file; null for none. One look while no file of the agent is marked. */
  find(identity: string): DoubtfulBytes | null {
    if (this.#files.facts(this.#folder) === null) return null;
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
