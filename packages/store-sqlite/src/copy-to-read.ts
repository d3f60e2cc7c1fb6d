import { refused } from "@throughline/core/store";
import { basename, join } from "node:path";
import { copyDatabase, makeTemporaryFolder, removeFolder, versionOf } from "./store-file.ts";

/** A copy is begun anew so often: who writes without a pause is not read beside. */
const mostCopies = 5;

/** A private copy of a database, with what its log holds, in a folder of its own, and what tells the version it is of. */
export function copyToRead(path: string): { readonly path: string; readonly folder: string; readonly version: string } {
  const folder = makeTemporaryFolder("throughline-read-");
  try {
    const copy = join(folder, basename(path));
    for (let attempt = 0; attempt < mostCopies; attempt++) {
      const version = versionOfDatabase(path);
      copyDatabase(path, copy);
      if (versionOfDatabase(path) === version) return { path: copy, folder, version };
    }
    throw refused("STORE_LOCKED", `${path} is written without a pause and cannot be copied.`, { path });
  } catch (error) {
    removeFolder(folder);
    throw error;
  }
}

/** Another text whenever the database or its log was written. */
export function versionOfDatabase(path: string): string {
  return `${versionOf(path)}, ${versionOf(`${path}-wal`)}`;
}
