export { builtinSqlite } from "./node/builtin-sqlite.ts";
export { inOneThread } from "./node/one-thread.ts";
export { systemEnvironment } from "./node/system-environment.ts";
export { monotonicMs, systemClock, systemRandom, systemRecordIds } from "./node/system-ports.ts";
