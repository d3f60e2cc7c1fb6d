// Shared functions that need Node. They are apart from `internal.ts`, so that browsers can load that one.
export { builtinSqlite } from "./node/builtin-sqlite.ts";
export { folderScope, realFolder, resolvedFolder } from "./node/folder-scope.ts";
export { inOneThread } from "./node/one-thread.ts";
export { processOwners } from "./node/process-owners.ts";
export type { TurnOwners } from "./node/process-owners.ts";
export { MemoryBudget, withinMemory } from "./queries/memory-budget.ts";
export { readRecords } from "./queries/read-records.ts";
export { scanRecords } from "./queries/scan-records.ts";
export { mostIndexedHits, searchHits } from "./queries/search-hits.ts";
export type { FoundHits, HitQuery } from "./queries/search-hits.ts";
