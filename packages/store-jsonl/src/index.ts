export type { JsonlStoreOptions } from "./jsonl-store-options.ts";
export { createJsonlStore } from "./jsonl-store.ts";
export type { LockPort } from "./lock-file.ts";
export { properLockfileLocks } from "./proper-lockfile-locks.ts";
