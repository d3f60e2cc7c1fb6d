import { pid } from "node:process";
import { systemClock } from "@throughline/core/node";
import { fileError, isMissing, readWhole } from "./file-work.ts";
import type { Files } from "./files.ts";
import type { LockFile, LockPort } from "./lock-file.ts";
import { parseObject } from "./stored-line.ts";

/** An empty lock file is somebody's who has not written it yet, for so long; then it is left over. */
const emptyGraceMs = 30_000;
/** Said to others: nobody has to wait longer than a write takes. */
const maxHoldMs = 10_000;

/**
 * The lock files of OpenClaw's file eras: `<file>.lock`, made exclusively, with the owner's process in it. Taken beside
 * the kernel's lock and after it, so that only one process of ours ever judges whether one is left over. One whose
 * owner lives, or lives on another host, is waited for and never taken away.
 */
export const openclawLocks: LockPort = {
  name: "openclaw",
  isKernels: false,
  open(files, path): LockFile {
    return {
      path,
      identity: null,
      tryLock: () => tryLock(files, path, true),
      unlock: () => files.remove(path),
      close: () => undefined,
    };
  },
};

function tryLock(files: Files, path: string, mayEvict: boolean): boolean {
  let handle: number;
  try {
    handle = files.open(path, "create");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw fileError(error, path);
    if (!mayEvict || !isLeftOver(files, path)) return false;
    files.remove(path);
    return tryLock(files, path, false);
  }
  try {
    const createdAt = new Date(systemClock.nowMs()).toISOString();
    const starttime = startTimeOf(files, pid);
    const owner = { pid, createdAt, ...(starttime === null ? {} : { starttime }), maxHoldMs };
    files.write(handle, Buffer.from(JSON.stringify(owner)));
    return true;
  } catch (error) {
    files.remove(path);
    throw fileError(error, path);
  } finally {
    files.close(handle);
  }
}

/** The owner's process is gone, or its number went to another one. */
function isLeftOver(files: Files, path: string): boolean {
  const owner = ownerOf(files, path);
  if (owner === null) {
    const facts = files.facts(path);
    return facts !== null && systemClock.nowMs() - Number(facts.modifiedNs / 1_000_000n) > emptyGraceMs;
  }
  if (!isAlive(owner.pid)) return true;
  const startTime = startTimeOf(files, owner.pid);
  return owner.starttime !== null && startTime !== null && owner.starttime !== startTime;
}

/** Whose the lock is; null when nothing in it says so. */
export function ownerOf(
  files: Files,
  path: string,
): { readonly pid: number; readonly starttime: number | null } | null {
  const bytes = readWhole(files, path);
  const payload = bytes === null ? null : parseObject(Buffer.from(bytes).toString());
  const owner = payload?.["pid"];
  const starttime = payload?.["starttime"];
  if (typeof owner !== "number" || !Number.isInteger(owner) || owner <= 0) return null;
  return { pid: owner, starttime: typeof starttime === "number" ? starttime : null };
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
