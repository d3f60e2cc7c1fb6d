export { checkFiles } from "./check-files.ts";
export type { CheckedFile, CheckFilesOptions, TranscriptRepair } from "./check-files.ts";
export { checkStore } from "./check-store.ts";
export type { CheckStoreOptions, RepairedCopy, StoreCheck, StoreCheckListener } from "./check-store.ts";
export { verifyStore } from "./verify-store.ts";
export type { VerifyStoreListener, VerifyStoreOptions } from "./verify-store.ts";
