export type { PostgresPool } from "./connection-pool.ts";
export { createMovingStore } from "./moving-store.ts";
export { createPostgresStore } from "./postgres-store.ts";
export { relocateSessions } from "./relocate-sessions.ts";
export type { PostgresStore, PostgresStoreOptions } from "./store-options.ts";
