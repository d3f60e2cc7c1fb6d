/** What the tests of several packages need. Private: no source imports it. Programs that tests start may import it too. */
export { endEverywhere, endingStore, type EndingStore } from "./ending-store.ts";
export { firstColumn, specTables, stepTable } from "./spec-tables.ts";
export { stoppingStore, type StoppingStore } from "./stopping-store.ts";
export { aroundCalls, replaceMembers, type StoreCall } from "./store-proxies.ts";
export { until } from "./until.ts";
