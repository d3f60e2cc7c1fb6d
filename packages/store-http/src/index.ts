export { openHttpStore } from "./open-http-store.ts";
export type { HttpStoreOptions } from "./open-http-store.ts";
