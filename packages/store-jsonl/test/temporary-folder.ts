import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";

/** A folder that is gone after the test. */
export function temporaryFolders(): () => string {
  const made: string[] = [];
  afterEach(() => {
    for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
  });
  return () => {
    const folder = makeFolder();
    made.push(folder);
    return folder;
  };
}

export function makeFolder(): string {
  return mkdtempSync(join(tmpdir(), "throughline-jsonl-"));
}

/** Every file below a folder, by its path from there. */
export function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join(folder, path)).isFile())
    .toSorted();
}

/**
 * Content of every file but the locks, which are empty. What SQLite has open is read by another process: closing it in
 * this one would let SQLite's locks go.
 */
export function contentsBelow(folder: string): readonly Uint8Array[] {
  return filesBelow(folder)
    .filter((path) => !path.includes("/locks/"))
    .map((path) => join(folder, path))
    .map((path) =>
      path.includes("/index.db") ? execFileSync("cat", [path], { maxBuffer: 2 ** 30 }) : readFileSync(path),
    );
}
