export { builtinSqlite } from "./node/builtin-sqlite.ts";
export { systemClock, systemRandom, systemRecordIds } from "./node/system-ports.ts";
