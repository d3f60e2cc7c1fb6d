export type { PostgresConnection, PostgresPool } from "./connection-pool.ts";
export type { JobLeases } from "./job-leases.ts";
export { createMovingStore } from "./moving-store.ts";
export { createPostgresStore } from "./postgres-store.ts";
export { relocateSessions, type RelocatedFamily, type RelocateOptions } from "./relocate-sessions.ts";
export type { PostgresAppendOptions, PostgresStore, PostgresStoreOptions } from "./store-options.ts";
export type { JobLease } from "./store-context.ts";
