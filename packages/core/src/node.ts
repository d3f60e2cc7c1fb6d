export { builtinSqlite } from "./node/builtin-sqlite.ts";
export { monotonicMs, systemClock, systemRandom, systemRecordIds } from "./node/system-ports.ts";
export { createRecordIds } from "./record-ids.ts";
