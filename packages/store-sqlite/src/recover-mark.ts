import { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/store";
import { claim } from "./claim-file.ts";
import type { SqliteDriver } from "./sqlite-driver.ts";
import { isThere } from "./store-file.ts";

/** The file that is there, and locked, while a backup takes the place of a store. */
export function recoverMark(path: string): string {
  return `${path}.recovery`;
}

/**
 * Where a store is missing beside its mark it is being restored, or that was interrupted: no new one may begin there.
 * @throws {ThroughlineError} STORE_LOCKED while somebody is at it, STORE_CORRUPT when whoever was is gone
 */
export function assertNoRestore(path: string, driver: SqliteDriver): void {
  const mark = recoverMark(path);
  if (!isThere(mark)) return;
  const release = claim(mark, driver);
  if (release === null) throw refused("STORE_LOCKED", `${path} is being restored from a backup.`, { path });
  // The mark goes with the one who restores it, and not before.
  release({ keepFile: true });
  throw new ThroughlineError("STORE_CORRUPT", `Restoring ${path} from a backup was interrupted.`, {
    outcome: "not-applied",
    details: { path },
    remedy: `Restore it again: \`throughline restore-backup FILE --yes --store 'sqlite:${path}'\`. What was there before is kept beside it.`,
  });
}
