import { ageMsOf, flushFolder, timeGrainMs } from "./file-work.ts";
import type { Files } from "./files.ts";

const maxKnown = 1024;

/**
 * Which names of a folder are on the disk. A name counts only after this process has seen it and then flushed the
 * folder. Its creator may be a program that never flushes, or a process that was killed before.
 */
export class FlushedNames {
  readonly #files: Files;
  readonly #folder: string;
  /** What the folder was when it was flushed last; null where another change of it might not show. */
  #flushedAs: string | null = null;
  /** Files whose names this process put there and flushed, by path. */
  readonly #known: Map<string, string> = new Map();

  constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  /** Puts the name of an open file on the disk, unless it is there. At most a look at the folder while no name in it changes. */
  ensure(path: string, identity: string): void {
    if (this.#known.get(path) === identity) return;
    const facts = this.#files.facts(this.#folder);
    const seenAs = facts === null ? null : `${facts.identity}:${facts.modifiedNs}`;
    if (seenAs !== null && seenAs === this.#flushedAs) return;
    flushFolder(this.#files, this.#folder);
    this.#flushedAs = facts !== null && ageMsOf(facts) > timeGrainMs ? seenAs : null;
  }

  /** Puts the names on the disk after this process has given a file the path. */
  flush(path: string, identity: string): void {
    flushFolder(this.#files, this.#folder);
    if (this.#known.size >= maxKnown) this.#known.clear();
    this.#known.set(path, identity);
  }
}
