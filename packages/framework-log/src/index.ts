export { firstBatch } from "./first-batch.ts";
export { createFrameworkLog } from "./framework-log.ts";
export type { FrameworkLog, FrameworkLogOptions, LogChange, LogPlace, LogView, TurnOptions } from "./framework-log.ts";
export { frameworkSessionKey } from "./session-key.ts";
