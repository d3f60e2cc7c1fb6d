export { createHistory } from "./create-history.ts";
export type { History, HistoryWork } from "./create-history.ts";
