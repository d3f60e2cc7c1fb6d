export { restoreSqliteBackup } from "./backup-store.ts";
export type { RestoreOptions } from "./backup-store.ts";
export type { SqliteStoreOptions } from "./sqlite-store-options.ts";
export { createSqliteStore } from "./sqlite-store.ts";
