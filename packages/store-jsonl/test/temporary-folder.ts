import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { runFolder } from "../../../tools/memory-folder.ts";
import { isLongRun } from "../../../tools/test-size.ts";

/** A folder that is gone after the test. */
export function temporaryFolders(make: () => string = makeFolder): () => string {
  const made: string[] = [];
  afterEach(() => {
    for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
  });
  return () => {
    const folder = make();
    made.push(folder);
    return folder;
  };
}

export function makeFolder(): string {
  return mkdtempSync(join(tmpdir(), "throughline-jsonl-"));
}

/**
 * A folder in memory where there is room, for tests that repeat one thing hundreds of times: a flush costs nothing there.
 * The long tier runs them on the disk.
 */
export function makeQuickFolder(): string {
  const memory = isLongRun ? null : runFolder();
  return memory === null ? makeFolder() : mkdtempSync(join(memory, "throughline-jsonl-"));
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
      /\/(?:index|vectors)\.db/.test(path) ? execFileSync("cat", [path], { maxBuffer: 2 ** 30 }) : readFileSync(path),
    );
}
