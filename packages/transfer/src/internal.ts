// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export type { Acknowledgement } from "./append-lines.ts";
export { databaseProgram } from "./database-file.ts";
export { foreignPlaces, openclawState, placesAt, programTranscripts } from "./foreign/foreign-places.ts";
export type { ForeignPlace, ProgramTranscripts } from "./foreign/foreign-places.ts";
export { explainForeignStore, foreignDatabaseError } from "./foreign/foreign-store.ts";
export { isOwnPlace } from "./foreign/own-place.ts";
export { sqliteFileOf } from "./foreign/sqlite-file.ts";
export type { SqliteFile } from "./foreign/sqlite-file.ts";
export { receiptOf } from "./import-receipt.ts";
export { marksKeyStart, marksNamespace } from "./imported-sources.ts";
export type { ImportResult } from "./import-results.ts";
export { writeNewFile } from "./node/target-files.ts";
export { readDrafts } from "./read-drafts.ts";
export type { DraftLine } from "./read-drafts.ts";
export { nameSessionId } from "./transcript-source.ts";
