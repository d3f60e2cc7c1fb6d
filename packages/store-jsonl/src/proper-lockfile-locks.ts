import type { LockFile, LockPort } from "./lock-file.ts";
import { fileError } from "./file-work.ts";

/** What is used of `proper-lockfile`. */
export interface ProperLockfile {
  /** Locks the path, and gives the function that unlocks it. */
  lockSync(path: string, options: Readonly<Record<string, unknown>>): () => void;
}

/** Beyond every wait there is, and still a delay that timers take. */
const neverMs = 2 ** 30;

/**
 * Locks for folders on a network file system, through `proper-lockfile`, whose folders every client of the server sees.
 *
 * It cannot promise what the kernel's locks do: after a crash the lock stays until somebody removes its folder, for
 * taking over one that looks old lets two owners in. So nothing is ever taken over here, and its default handler, which
 * ends the process from a timer, is not used.
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
