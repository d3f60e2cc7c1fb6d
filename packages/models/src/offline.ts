export { offline } from "./offline-model.ts";
export type { OfflineModelOptions } from "./offline-model.ts";
