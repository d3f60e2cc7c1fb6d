import { pid } from "node:process";
import { systemClock } from "@throughline/core/internal";
import { parseObject } from "./json-members.ts";
import { ageMsOf, fileError, isMissing, readWhole } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import type { LockFile, LockPort } from "./lock-file.ts";

/**
 * A lock file without an owner may be one that its owner has not written yet. After this time it counts as abandoned.
 */
export const unknownOwnerGraceMs: number = 30_000;
/** Informs other programs how long a write may hold the lock. */
const maxHoldMs = 10_000;
/** Limits the hold time that another program may claim for a process that is not alive. */
const maxBelievedHoldMs = 30 * 60_000;
/** Marks a lock file of this store. Such a lock is only taken under the kernel's lock. */
const ourName = "throughline";

/**
 * Implements OpenClaw's lock files: `<file>.lock`, created exclusively, with the owner's process. They are taken after
 * the kernel's lock, so that only one process of this store at a time judges whether a lock is abandoned. A lock is
 * never removed while its owner lives, or may live on another machine.
 */
export const openclawLocks: LockPort = {
  name: "openclaw",
  isKernels: false,
  open(files, path): LockFile {
    let mine: string | null = null;
    return {
      path,
      identity: null,
      tryLock() {
        mine = tryLock(files, path, true);
        return mine !== null;
      },
      // Another program may have replaced the lock file. The new file must stay.
      unlock: () => removeIf(files, path, mine),
      close: () => undefined,
    };
  },
};

function removeIf(files: Files, path: string, one: string | null): void {
  if (one !== null && stampOf(files.facts(path)) === one) files.remove(path);
}

/**
 * Identifies a lock file. The identity alone is not enough, because a new file may reuse the inode of a removed one.
 */
function stampOf(facts: FileFacts | null): string | null {
  return facts === null ? null : `${facts.identity}:${facts.sizeBytes}:${facts.modifiedNs}`;
}

function tryLock(files: Files, path: string, mayEvict: boolean): string | null {
  let handle: number;
  try {
    handle = files.open(path, "create");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw fileError(error, path);
    if (!mayEvict) return null;
    const judged = stampOf(files.facts(path));
    if (!isLeftOver(files, path)) return null;
    removeIf(files, path, judged);
    return tryLock(files, path, false);
  }
  try {
    const createdAt = new Date(systemClock.nowMs()).toISOString();
    const starttime = startTimeOf(files, pid);
    const owner = { pid, createdAt, ...(starttime === null ? {} : { starttime }), maxHoldMs, by: ourName };
    files.write(handle, Buffer.from(JSON.stringify(owner)));
    return stampOf(files.factsOf(handle));
  } catch (error) {
    files.remove(path);
    throw fileError(error, path);
  } finally {
    files.close(handle);
  }
}

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

/** Tests whether another program holds the lock, without taking it. A lock of this store does not count. */
export function isHeldByOthers(files: Files, path: string): boolean {
  return files.facts(path) !== null && !isLeftOver(files, path);
}

export function ownerOf(
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
