export { createMemoryData } from "./memory-data.ts";
export type { MemoryData } from "./memory-data.ts";
export { createMemoryStore } from "./memory-store.ts";
export type { MemoryStoreOptions } from "./memory-store.ts";
