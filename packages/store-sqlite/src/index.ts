export type { BackupPolicy } from "./backup-keeper.ts";
export { restoreSqliteBackup } from "./backup-store.ts";
export type { RestoreOptions } from "./backup-store.ts";
export type { SqliteDriver } from "./connection.ts";
export type { SearchFill } from "./index-filler.ts";
export { createSqliteStore } from "./sqlite-store.ts";
export type { SqliteStoreOptions } from "./sqlite-store-options.ts";
