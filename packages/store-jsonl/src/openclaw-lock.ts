import type { ThroughlineError } from "@throughline/core";
import { parseObject } from "./json-members.ts";
import { ageMsOf, isMissing, readWhole } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import { describeProcess } from "./lock-holder.ts";
import { lockedError } from "./session-lock.ts";

/**
 * A lock file without an owner may be one that its owner has not written yet. After this time it counts as abandoned.
 */
const unknownOwnerGraceMs = 30_000;
/** Limits the hold time that another program may claim for a process that is not alive. */
const maxBelievedHoldMs = 30 * 60_000;
/** Marks a lock file of an earlier version of this store, which took such locks under the kernel's lock. */
const ourName = "throughline";

export function lockFileOf(path: string): string {
  return `${path}.lock`;
}

/**
 * Tests whether a running program holds OpenClaw's lock file. One that is left over is removed. This store takes no such
 * lock: other programs may have written before it, not beside it.
 */
export function isHeldByOthers(files: Files, path: string): boolean {
  const judged = stampOf(files.facts(path));
  if (judged === null) return false;
  if (!isLeftOver(files, path)) return true;
  // Another program may have replaced the lock file meanwhile. The new file must stay.
  if (stampOf(files.facts(path)) === judged) files.remove(path);
  return false;
}

/**
 * Identifies a lock file. The identity alone is not enough, because a new file may reuse the inode of a removed one.
 */
function stampOf(facts: FileFacts | null): string | null {
  return facts === null ? null : `${facts.identity}:${facts.sizeBytes}:${facts.modifiedNs}`;
}

export function foreignLockError(files: Files, path: string, waitedMs: number): ThroughlineError {
  const owner = ownerOf(files, path);
  const holder = owner === null ? null : describeProcess(files, owner.pid);
  return lockedError(path, waitedMs, holder, holder === null ? nobodysRemedy : undefined);
}

const nobodysRemedy = `Nothing in the lock file says whose it is. Try again: ${unknownOwnerGraceMs / 1000} s after it was written it is taken for left over.`;

/**
 * Tests whether a lock is abandoned. A lock of this store is: its owner would hold the kernel's lock, which the caller
 * holds. The owner of another program's lock must be gone, or its process id reused. The lock must also be older than
 * its maximum hold time, because a process id from another container means nothing here.
 */
function isLeftOver(files: Files, path: string): boolean {
  const owner = ownerOf(files, path);
  if (owner?.isOurs === true) return true;
  const facts = files.facts(path);
  if (facts === null) return false;
  const ageMs = ageMsOf(facts);
  // A file time in the future comes from before the clock was set back. It would block all writers until then.
  if (owner === null) return Math.abs(ageMs) > unknownOwnerGraceMs;
  const startTime = startTimeOf(files, owner.pid);
  const isItself =
    isAlive(owner.pid) && (owner.starttime === null || startTime === null || owner.starttime === startTime);
  return !isItself && ageMs > Math.max(unknownOwnerGraceMs, owner.maxHoldMs ?? 0);
}

function ownerOf(
  files: Files,
  path: string,
): {
  readonly pid: number;
  readonly starttime: number | null;
  readonly maxHoldMs: number | null;
  readonly isOurs: boolean;
} | null {
  const bytes = readWhole(files, path);
  const payload = bytes === null ? null : parseObject(Buffer.from(bytes).toString());
  const owner = payload?.["pid"];
  const starttime = payload?.["starttime"];
  const holdMs = payload?.["maxHoldMs"];
  if (typeof owner !== "number" || !Number.isInteger(owner) || owner <= 0) return null;
  return {
    pid: owner,
    starttime: typeof starttime === "number" ? starttime : null,
    maxHoldMs: typeof holdMs === "number" && Number.isFinite(holdMs) ? Math.min(holdMs, maxBelievedHoldMs) : null,
    isOurs: payload?.["by"] === ourName,
  };
}

function isAlive(owner: number): boolean {
  try {
    process.kill(owner, 0);
    return true;
  } catch (error) {
    // The process belongs to another user, so it is alive.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * Returns the start time of a process in kernel ticks, because a reused process id has another one. Returns null when
 * the kernel does not report it.
 */
function startTimeOf(files: Files, owner: number): number | null {
  try {
    const text = Buffer.from(readWhole(files, `/proc/${owner}/stat`) ?? []).toString();
    const value = Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[19]);
    return Number.isInteger(value) && text !== "" ? value : null;
  } catch (error) {
    if (isMissing(error) || (error as { code?: unknown }).code === "STORE_IO") return null;
    throw error;
  }
}
