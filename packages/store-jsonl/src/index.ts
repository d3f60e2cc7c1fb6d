export { nodeFiles } from "./files.ts";
export type { FileFacts, Files, FileSystemKind, OpenMode } from "./files.ts";
export { createJsonlStore } from "./jsonl-store.ts";
export type { JsonlStoreOptions } from "./jsonl-store-options.ts";
export { kernelLocks } from "./lock-file.ts";
export type { LockFile, LockPort } from "./lock-file.ts";
export { properLockfileLocks } from "./proper-lockfile-locks.ts";
export type { ProperLockfile } from "./proper-lockfile-locks.ts";
