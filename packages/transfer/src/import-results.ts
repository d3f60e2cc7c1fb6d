import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ImportSource } from "./import-types.ts";

/** Holds the part of a source's result that {@link ImportResults} keeps. */
export type ImportResult = Pick<
  ImportSource,
  "path" | "format" | "key" | "sessionId" | "state" | "records" | "derived" | "repaired" | "lost"
>;

/** Limits the results in memory; full pages go to the temporary file. */
const pageSources = 1000;

/**
 * Keeps the results of an import until they are printed, in little memory: a directory may hold 100,000 sessions.
 * All but the last page of 1,000 results are in a file of the temporary folder, mode 0600. Its name is removed at once,
 * so that the file vanishes with the process.
 * @example
 * using results = new ImportResults();
 * for await (const source of importPaths(store, paths)) results.add(source);
 * for (const page of results.pages()) print(page);
 */
export class ImportResults implements Disposable {
  private held: ImportResult[] = [];
  private file: number | null = null;
  private sizeBytes = 0;
  /** Holds the byte size of each page in the file. */
  private readonly pageBytes: number[] = [];

  /** Adds a result behind the earlier ones. */
  add({ path, format, key, sessionId, state, records, derived, repaired, lost }: ImportSource): void {
    this.held.push({ path, format, key, sessionId, state, records, derived, repaired, lost });
    if (this.held.length === pageSources) this.spill();
  }

  /** Yields the results in their order, a page at a time. May be called once. */
  *pages(): Generator<readonly ImportResult[]> {
    let at = 0;
    for (const bytes of this.pageBytes) {
      const page = Buffer.allocUnsafe(bytes);
      for (let read = 0; read < bytes;) read += readSync(this.file ?? -1, page, read, bytes - read, at + read);
      at += bytes;
      yield JSON.parse(page.toString("utf8")) as ImportResult[];
    }
    if (this.held.length > 0) yield this.held;
  }

  /** Empties and closes the temporary file; the results in it are lost. */
  [Symbol.dispose](): void {
    if (this.file === null) return;
    ftruncateSync(this.file, 0);
    closeSync(this.file);
    this.file = null;
  }

  private spill(): void {
    this.file ??= unnamedFile();
    const page = Buffer.from(JSON.stringify(this.held));
    for (let written = 0; written < page.length;)
      written += writeSync(this.file, page, written, page.length - written, this.sizeBytes + written);
    this.pageBytes.push(page.length);
    this.sizeBytes += page.length;
    this.held = [];
  }
}

/** Removes the file's name once it is open, so that the file vanishes with the process, even after a crash. */
function unnamedFile(): number {
  const folder = mkdtempSync(join(tmpdir(), "throughline-import-"));
  try {
    return openSync(join(folder, "results"), "wx+", 0o600);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
