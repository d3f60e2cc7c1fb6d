import type { LockFile, LockPort } from "./lock-file.ts";
import { fileError } from "./file-work.ts";

/** Describes the part of `proper-lockfile` that the store uses. */
export interface ProperLockfile {
  /** Locks the path and returns the function that unlocks it. */
  lockSync(path: string, options: Readonly<Record<string, unknown>>): () => void;
}

/** This delay is longer than every wait of the store, and short enough for a Node timer. */
const neverMs = 2 ** 30;

/**
 * Creates locks for folders on a network file system, through `proper-lockfile`, which every client of the server sees.
 *
 * These locks are weaker than the kernel's: after a crash the lock stays until its folder is removed by hand. A lock
 * that looks old is never taken over, because that could let two owners in. The library's default handler, which ends
 * the process from a timer, is not used.
 */
export function properLockfileLocks(library: ProperLockfile): LockPort {
  return {
    name: "proper-lockfile",
    isKernels: false,
    open(_files, path): LockFile {
      let release: (() => void) | null = null;
      return {
        path,
        identity: null,
        tryLock() {
          try {
            release = library.lockSync(path, {
              realpath: false,
              stale: Number.POSITIVE_INFINITY,
              update: neverMs,
              onCompromised: () => undefined,
            });
            return true;
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code === "ELOCKED") return false;
            throw fileError(error, path);
          }
        },
        unlock() {
          const held = release;
          release = null;
          held?.();
        },
        close: () => undefined,
      };
    },
  };
}
