export type { SqliteDriver } from "./open-connection.ts";
export { createSqliteStore } from "./sqlite-store.ts";
export type { SqliteStoreOptions } from "./sqlite-store.ts";
