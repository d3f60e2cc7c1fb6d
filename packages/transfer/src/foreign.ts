export { explainForeignStore, foreignDatabaseError } from "./foreign/foreign-store.ts";
export { foreignPlaces, openclawState, placesAt, type ForeignPlace } from "./foreign/foreign-places.ts";
export { isOwnPlace } from "./foreign/own-place.ts";
export { sqliteFileOf, type SqliteFile } from "./foreign/sqlite-file.ts";
