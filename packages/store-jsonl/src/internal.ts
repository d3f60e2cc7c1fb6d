// Functions that the packages of Throughline share. They may change in any release and are not public.
import { nodeFiles } from "./files.ts";
import { type LockFile, openLockFile } from "./lock-file.ts";

/**
 * Opens a lock of the kernel on an empty file, and creates the file if necessary. The lock is not taken yet. It excludes
 * every process of the host, and ends with its process in every case.
 * @throws {ThroughlineError} PATH_UNSAFE, STORE_READ_ONLY, STORE_UNSUPPORTED, STORE_IO
 */
export function openProcessLock(path: string): LockFile {
  return openLockFile(nodeFiles, path);
}
