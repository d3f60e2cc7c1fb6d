export { describeStoreConformance } from "./describe-store-conformance.ts";
export { appendGarbage, appendZeros, cutFile, filePrefixes, flipByte } from "./faults/damage-file.ts";
export { killProcess } from "./faults/kill-process.ts";
export { runConformance } from "./run-conformance.ts";
export type { StoreUnderTest } from "./store-under-test.ts";
export { createXorCodec } from "./xor-codec.ts";
