export { limitContext } from "./limit-context.ts";
export type { ContextLimit, LimitedContext, WindowCut } from "./limit-context.ts";
export { truncateResults } from "./truncate-results.ts";
export type { TruncatedContext, TruncateOptions, Truncation } from "./truncate-results.ts";
