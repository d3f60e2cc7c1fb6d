import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { mostFileBytes, readBoundedFile } from "@throughline/config/internal";
import { systemRandom } from "@throughline/core/internal";

/** Returns the JSON value of a file in the home; null if the file is missing or damaged. */
export function readHomeFile(path: string): unknown {
  try {
    return JSON.parse(readBoundedFile(path, { what: "state", mostBytes: mostFileBytes })) as unknown;
  } catch {
    // Every file that is read like this only saves work, so its content may be lost.
    return null;
  }
}

/** Creates the home, for this user only. A home that exists stays as it is. */
export function makeHome(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

/** Replaces the file in one step, because two processes may write at once and either state is valid. */
export function writeHomeFile(path: string, value: unknown): void {
  makeHome(dirname(path));
  const temporary = `${path}.${systemRandom.uuid()}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(value)}\n`, { mode: 0o600 });
  renameSync(temporary, path);
}
