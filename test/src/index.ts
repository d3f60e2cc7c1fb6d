/**
 * Holds tools that the tests of several packages share. The package is private: only tests, and programs that tests
 * start, import it.
 */
export { endEverywhere, endingStore, type EndingStore } from "./ending-store.ts";
export { LateTimers } from "./late-timers.ts";
export { firstColumn, specTables, stepTable } from "./spec-tables.ts";
export { stoppingStore, type StoppingStore } from "./stopping-store.ts";
export { aroundCalls, replaceMembers, type StoreCall } from "./store-proxies.ts";
export { until } from "./until.ts";
