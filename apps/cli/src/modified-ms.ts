import { stat } from "node:fs/promises";

/** Returns when a program last wrote a file, in UTC milliseconds; null for one that was removed or is not readable. */
export async function modifiedMs(path: string): Promise<number | null> {
  try {
    return Math.round((await stat(path)).mtimeMs);
  } catch {
    // No program writes to such a file here.
    return null;
  }
}
