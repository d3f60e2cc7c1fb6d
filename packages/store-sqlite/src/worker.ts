// A door of its own: whoever does not want a thread does not load what starts one.
export { createSqliteWorkerStore } from "./worker-store.ts";
export type { SqliteWorkerStoreOptions } from "./worker-store.ts";
