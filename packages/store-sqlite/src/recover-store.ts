import { createFinding, hasErrorCode, type Finding } from "@throughline/core";
import { refused } from "@throughline/core/store";
import { copyBackup } from "./backup-store.ts";
import { alone } from "./claim-file.ts";
import { closeDatabase, openConnection, type OpenOptions } from "./open-connection.ts";
import { recoverMark } from "./recover-mark.ts";
import { isDamage } from "./sqlite-errors.ts";
import { databasePath } from "./database-path.ts";
import { backupsBeside, isThere, replaceFile } from "./store-file.ts";

/** True when a store could not be opened because its file is no longer what was written. */
export function isUnreadable(error: unknown): boolean {
  return hasErrorCode(error, "STORE_CORRUPT") || isDamage(error);
}

/**
 * Puts the newest good backup in the place of a file that cannot be opened as a store. The file, its log and its index
 * are kept beside it. Null when there is no backup: then nothing is touched. A database of another program never gets here.
 * @throws {ThroughlineError} STORE_LOCKED while another process is at it, or has just been
 */
export function recoverStore(options: OpenOptions, nowMs: number, damage: unknown): Finding | null {
  const { driver } = options;
  const path = databasePath(options.path);
  if (backupsBeside(path).length === 0) return null;
  const restored = alone(recoverMark(path), driver, `Another process restores ${path}.`, () => {
    if (isThere(path) && isReadable(options))
      throw refused("STORE_LOCKED", `Another process has restored ${path}.`, { path });
    const part = `${path}.restored.part`;
    const backup = backupsBeside(path).find((each) => isGood(each, part, driver));
    if (backup === undefined) return null;
    const kept = replaceFile(path, part, `damaged-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-")}`);
    return { backup, kept };
  });
  if (restored === null) return null;
  const why = damage instanceof Error ? damage.message : String(damage);
  const { backup, kept } = restored;
  return createFinding("STORE_RESTORED", `${path} was restored from ${backup}; the damaged file is ${kept}. ${why}`, {
    path: kept,
    repaired: true,
  });
}

/** Where two processes meet the same damage, the second one must not take for damaged what the first has put there. */
function isReadable(options: OpenOptions): boolean {
  try {
    closeDatabase(openConnection({ ...options, create: false }).database);
    return true;
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}

/** Copies the backup to the part; false when it is none. */
function isGood(backup: string, part: string, driver: OpenOptions["driver"]): boolean {
  try {
    copyBackup(backup, part, driver);
    return true;
  } catch (error) {
    if (isUnreadable(error) || hasErrorCode(error, "STORE_FOREIGN", "STORE_VERSION_UNSUPPORTED")) return false;
    throw error;
  }
}
