export { limitContext } from "./limit-context.ts";
export type { LimitedContext } from "./limit-context.ts";
export type { ContextLimit, WindowCut } from "./window-cutter.ts";
export { truncateResults } from "./truncate-results.ts";
export type { TruncatedContext, TruncateOptions, Truncation } from "./truncate-results.ts";
