import { createFinding, type Finding } from "@throughline/core";
import { findLogDamage, type LogDamage } from "./log-damage.ts";
import { damagedLogEnding, isInUse, keepCopy, lookInto, sizeOf } from "./store-file.ts";

/**
 * Whether commits lie behind damage in the log that a crash has left, which the first connection would remove. Null
 * without a log, and if another process uses it, which has read it already. Reading it takes no lock.
 */
export function damageOfLog(path: string, pageBytes: number): LogDamage | null {
  const log = `${path}-wal`;
  if (sizeOf(log) === 0 || isInUse(path)) return null;
  const look = (): LogDamage | null => lookInto(log, (read) => findLogDamage(read, sizeOf(log), pageBytes));
  const first = look();
  if (first === null) return null;
  // A process in another container may be writing it unseen: what is damaged stays as it is.
  const second = look();
  return second !== null && JSON.stringify(second) === JSON.stringify(first) ? first : null;
}

/** Keeps the log beside the store, before anybody opens it, and says what lies in it. */
export function keepDamagedLog(path: string, damage: LogDamage): Finding {
  const { damagedFrame, framesBehind, commitsBehind, bytesBehind, salts } = damage;
  const kept = `${path}${damagedLogEnding}${salts}-${damagedFrame}`;
  keepCopy(`${path}-wal`, kept);
  const where = damagedFrame === 0 ? "its header" : `frame ${damagedFrame}`;
  const message =
    `The log of ${path} is damaged in ${where}: ${framesBehind} frames behind it with ${commitsBehind} commits ` +
    `(${bytesBehind} bytes) cannot be applied. The log is kept as ${kept}.`;
  return createFinding("LOG_DAMAGED", message, { path: kept });
}
