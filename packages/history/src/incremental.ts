export { createHistory } from "./create-history.ts";
export type { History, HistoryOptions, HistoryWork, SharedRendering } from "./create-history.ts";
export type { HistoryWindow, WindowedContext } from "./growing-window.ts";
