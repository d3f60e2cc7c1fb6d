export { explainForeignStore, foreignDatabaseError } from "./foreign/foreign-store.ts";
export { foreignPlaces, openclawState, placesAt, type ForeignPlace } from "./foreign/foreign-places.ts";
export { sqliteFileOf, type SqliteFile } from "./foreign/sqlite-file.ts";
