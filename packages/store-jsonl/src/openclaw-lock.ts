import { pid } from "node:process";
import { systemClock } from "@throughline/core/internal";
import { parseObject } from "./json-members.ts";
import { ageMsOf, fileError, isMissing, readWhole } from "./file-work.ts";
import type { FileFacts, Files } from "./files.ts";
import type { LockFile, LockPort } from "./lock-file.ts";

/** A lock file that does not say whose it is may be somebody's who has not written it yet, for so long; then it is left over. */
export const unknownOwnerGraceMs: number = 30_000;
/** Said to others: nobody has to wait longer than a write takes. */
const maxHoldMs = 10_000;
/** Nobody is believed to hold a lock for longer without being alive. */
const maxBelievedHoldMs = 30 * 60_000;
/** Says in a lock file that it is one of ours, and so taken after the kernel's lock. */
const ourName = "throughline";

/**
 * The lock files of OpenClaw's file eras: `<file>.lock`, made exclusively, with the owner's process in it. Taken beside
 * the kernel's lock and after it, so that only one process of ours ever judges whether one is left over. A lock whose
 * owner lives, or may live on another machine, is waited for and not removed.
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
      // Should somebody have taken ours away and made another, that one is not ours to remove.
      unlock: () => removeIf(files, path, mine),
      close: () => undefined,
    };
  },
};

/** Removes the lock if it is still this one. */
function removeIf(files: Files, path: string, one: string | null): void {
  if (one !== null && stampOf(files.facts(path)) === one) files.remove(path);
}

/** Which lock file it is: the number of a removed file goes to the next that is made. */
function stampOf(facts: FileFacts | null): string | null {
  return facts === null ? null : `${facts.identity}:${facts.sizeBytes}:${facts.modifiedNs}`;
}

/** Which lock it is; null when somebody else holds it. */
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
 * Whether nobody can be behind the lock any more. One of ours is left over: its owner would hold the kernel's lock,
 * which whoever asks holds. For a lock of another program, its process must be gone, or its number belong to another
 * process. It must also be older than any lock may be held, because the number of a process in another container means
 * nothing here.
 */
function isLeftOver(files: Files, path: string): boolean {
  const owner = ownerOf(files, path);
  if (owner?.isOurs === true) return true;
  const facts = files.facts(path);
  if (facts === null) return false;
  const ageMs = ageMsOf(facts);
  // One from the future was written before the clock was set back: it would hold up every writer until then.
  if (owner === null) return Math.abs(ageMs) > unknownOwnerGraceMs;
  const startTime = startTimeOf(files, owner.pid);
  const isItself =
    isAlive(owner.pid) && (owner.starttime === null || startTime === null || owner.starttime === startTime);
  return !isItself && ageMs > Math.max(unknownOwnerGraceMs, owner.maxHoldMs ?? 0);
}

/** Whether another program holds the lock now. Takes nothing; one of ours does not count. */
export function isHeldByOthers(files: Files, path: string): boolean {
  return files.facts(path) !== null && !isLeftOver(files, path);
}

/** Whose the lock is; null when nothing in it says so. */
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
    // Of another user: it lives.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** When the process began, in the kernel's ticks; null where the kernel does not tell. */
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
