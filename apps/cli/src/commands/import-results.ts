import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ImportSource } from "@throughline/transfer";

/** What is told of a source at the end. */
export type ShownSource = Pick<
  ImportSource,
  "path" | "format" | "key" | "sessionId" | "state" | "records" | "repaired" | "lost"
>;

/** So many are in memory at a time. */
const pageSources = 1000;

/**
 * The results of an import until all of them are told: a directory may hold more sessions than a command should have in
 * memory, so that what goes beyond a page lies in a file that nobody else sees.
 */
export class ImportResults implements Disposable {
  private held: ShownSource[] = [];
  private file: number | null = null;
  private sizeBytes = 0;
  /** Of each page in the file. */
  private readonly pageBytes: number[] = [];

  add({ path, format, key, sessionId, state, records, repaired, lost }: ImportSource): void {
    this.held.push({ path, format, key, sessionId, state, records, repaired, lost });
    if (this.held.length === pageSources) this.spill();
  }

  /** In their order, a page at a time; once. */
  *pages(): Generator<readonly ShownSource[]> {
    let at = 0;
    for (const bytes of this.pageBytes) {
      const page = Buffer.allocUnsafe(bytes);
      for (let read = 0; read < bytes;) read += readSync(this.file ?? -1, page, read, bytes - read, at + read);
      at += bytes;
      yield JSON.parse(page.toString("utf8")) as ShownSource[];
    }
    if (this.held.length > 0) yield this.held;
  }

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

/** A file whose name is gone as soon as it is open: it ends with the process, however that ends. */
function unnamedFile(): number {
  const folder = mkdtempSync(join(tmpdir(), "throughline-import-"));
  try {
    return openSync(join(folder, "results"), "wx+", 0o600);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
