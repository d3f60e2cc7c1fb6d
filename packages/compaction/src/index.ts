export type { CompactionResult } from "./background-compaction.ts";
export type { CompactionSettings } from "./compaction-settings.ts";
export { createCompactor } from "./compactor.ts";
export type { Compactor, CompactorOptions } from "./compactor.ts";
