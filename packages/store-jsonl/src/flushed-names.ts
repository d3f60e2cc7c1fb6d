import { ageMsOf, flushFolder, timeGrainMs } from "./file-work.ts";
import type { Files } from "./files.ts";

const maxKnown = 1024;

/**
 * Tracks which names of a folder are on the disk. A name counts only after this process has seen it and then flushed
 * the folder. Its creator may be a program that never flushes, or a process that was killed before the flush.
 */
export class FlushedNames {
  readonly #files: Files;
  readonly #folder: string;
  /**
   * Holds the folder's fingerprint at the last flush; null when another change might not show in its modification time.
   */
  #flushedAs: string | null = null;
  readonly #known: Map<string, string> = new Map();

  constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  /**
   * Flushes the name of an open file, unless that was done. While no name in the folder changes, this costs at most one
   * system call.
   */
  ensure(path: string, identity: string): void {
    if (this.#known.get(path) === identity) return;
    const facts = this.#files.facts(this.#folder);
    const fingerprint = facts === null ? null : `${facts.identity}:${facts.modifiedNs}`;
    if (fingerprint !== null && fingerprint === this.#flushedAs) return;
    flushFolder(this.#files, this.#folder);
    this.#flushedAs = facts !== null && ageMsOf(facts) > timeGrainMs ? fingerprint : null;
  }

  /** Flushes the names of the folder. Call it after this process has given a file the path. */
  flush(path: string, identity: string): void {
    flushFolder(this.#files, this.#folder);
    if (this.#known.size >= maxKnown) this.#known.clear();
    this.#known.set(path, identity);
  }
}
