export { buildContext } from "./build-context.ts";
export type { BuildContextOptions, Context } from "./build-context.ts";
export { createHistory } from "./create-history.ts";
export type { History, HistoryOptions } from "./create-history.ts";
export type { HistoryTarget } from "./history-targets.ts";
export type { Repair } from "./repair.ts";
