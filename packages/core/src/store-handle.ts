// What a store's handle is made of, and how the threads of a process open files that are locked. For implementers, not for users.
export { createCapabilities } from "./create-capabilities.ts";
export type { CapabilityOptions } from "./create-capabilities.ts";
export { createHandleLife } from "./handle-life.ts";
export type { HandleLife } from "./handle-life.ts";
export { holdLock, lockedAgent } from "./hold-lock.ts";
export type { LockAttempts, ReleaseLock } from "./hold-lock.ts";
export { inOneThread } from "./node/one-thread.ts";
