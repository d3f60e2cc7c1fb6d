export { findRecord } from "./find-record.ts";
export { followRecords } from "./follow-records.ts";
export { MemoryBudget, withinMemory } from "./memory-budget.ts";
export { readRecords } from "./read-records.ts";
export { readTail, type TailQuery } from "./read-tail.ts";
export { blocksText, messageRole, recordRole, recordText } from "./record-text.ts";
export { mostIndexedHits, searchHits, type FoundHits, type HitQuery } from "./search-hits.ts";
export { scanRecords, type ScanOptions } from "./scan-records.ts";
export {
  isBoundary,
  isChosen,
  selectRecords,
  type RecordSelection,
  type RoleOf,
  type TailSelection,
} from "./select-records.ts";
