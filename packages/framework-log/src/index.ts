export { adapterOptions, adapterOptionTable } from "./adapter-options.ts";
export type { AdapterOptions } from "./adapter-options.ts";
export { firstBatch, movesHead } from "./first-batch.ts";
export { frameworkErrors, loadedOnce } from "./framework-errors.ts";
export type { MakeFrameworkError } from "./framework-errors.ts";
export { createFrameworkLog } from "./framework-log.ts";
export type { FrameworkLog, FrameworkLogOptions, LogChange, LogPlace, LogView, TurnOptions } from "./framework-log.ts";
export { frameworkSessionKey } from "./session-key.ts";
