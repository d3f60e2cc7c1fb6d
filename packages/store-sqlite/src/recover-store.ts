import { createFinding, hasErrorCode, type Finding } from "@throughline/core";
import { refused } from "@throughline/core/store";
import { assertBackup } from "./backup-store.ts";
import type { OpenOptions } from "./open-connection.ts";
import { isDamage } from "./sqlite-errors.ts";
import { alone, backupsBeside, databasePath, replaceFile } from "./store-file.ts";

/** True when a store could not be opened because its file is no longer what was written. */
export function isUnreadable(error: unknown): boolean {
  return hasErrorCode(error, "STORE_CORRUPT") || isDamage(error);
}

/**
 * Puts the newest good backup in the place of a file that cannot be opened as a store. The file, its log and its index
 * are kept beside it. Null when there is no backup: then nothing is touched, for the file may be another program's.
 * @throws {ThroughlineError} STORE_LOCKED while another process is at it
 */
export function recoverStore({ driver, path: given }: OpenOptions, nowMs: number, damage: unknown): Finding | null {
  const path = databasePath(given);
  const backup = backupsBeside(path).find((each) => isGood(each, driver));
  if (backup === undefined) return null;
  let kept = "";
  const isDone = alone(`${path}.recovery`, () => {
    kept = replaceFile(path, backup, `damaged-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-")}`);
  });
  if (!isDone) throw refused("STORE_LOCKED", `Another process restores ${path}.`, { path });
  const why = damage instanceof Error ? damage.message : String(damage);
  return createFinding("STORE_RESTORED", `${path} was restored from ${backup}; the damaged file is ${kept}. ${why}`, {
    path: kept,
    repaired: true,
  });
}

function isGood(path: string, driver: OpenOptions["driver"]): boolean {
  try {
    assertBackup(path, driver);
    return true;
  } catch (error) {
    if (isUnreadable(error) || hasErrorCode(error, "STORE_VERSION_UNSUPPORTED")) return false;
    throw error;
  }
}
