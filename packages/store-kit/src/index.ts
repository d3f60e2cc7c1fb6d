export { createStore } from "./create-store.ts";
export { readPages } from "./read-pages.ts";
export { WatchHub } from "./watch-hub.ts";
export type { KeptRecord, KeptSession, ListScan, SessionRow, StoreBackend, StoreChange } from "./store-backend.ts";
