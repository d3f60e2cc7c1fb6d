import { isFileId } from "@throughline/core/internal";
import { flushFolder, makeFolders, readWhole, replaceFile } from "./file-work.ts";
import type { Files } from "./files.ts";

const temporaryEnd = ".tmp";

/** The note of an append was taken back before the append had the lock of its session. Nothing was written. */
export class LostReferences extends Error {}

/**
 * Holds which files the records of each session refer to: one text file for a session, with one id in each line. An id
 * may be there before its record is, so that no file is deleted that a record is about to name.
 */
export class FileReferences {
  readonly #files: Files;
  readonly #folder: string;

  constructor(files: Files, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  sessions(): readonly string[] {
    if (this.#files.facts(this.#folder) === null) return [];
    return this.#files.names(this.#folder).filter((name) => !name.endsWith(temporaryEnd));
  }

  of(sessionId: string): readonly string[] {
    const bytes = readWhole(this.#files, this.#pathOf(sessionId));
    return bytes === null ? [] : Buffer.from(bytes).toString().split("\n").filter(isFileId);
  }

  add(sessionId: string, ids: readonly string[]): void {
    const known = this.of(sessionId);
    const missing = ids.filter((id) => !known.includes(id));
    if (missing.length > 0) this.set(sessionId, [...known, ...missing]);
  }

  /** Call it under the lock of the files. */
  set(sessionId: string, ids: readonly string[]): void {
    const path = this.#pathOf(sessionId);
    if (ids.length === 0) {
      if (this.#files.facts(path) === null) return;
      this.#files.remove(path);
    } else {
      if (this.#files.facts(this.#folder) === null) makeFolders(this.#files, this.#folder);
      replaceFile(this.#files, `${path}${temporaryEnd}`, path, (append) => append(Buffer.from(`${ids.join("\n")}\n`)));
    }
    flushFolder(this.#files, this.#folder);
  }

  #pathOf(sessionId: string): string {
    return `${this.#folder}/${sessionId}`;
  }
}
