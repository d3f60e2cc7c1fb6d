export { conformanceCases } from "./conformance-cases.ts";
export type { CaseContext, ConformanceCase } from "./conformance-case.ts";
export { describeStoreConformance } from "./describe-store-conformance.ts";
export type { DescribeStoreConformanceOptions, TestContext, TestRunner } from "./describe-store-conformance.ts";
export { runConformance } from "./run-conformance.ts";
export type { ConformanceResult, RunConformanceOptions } from "./run-conformance.ts";
export type { ConformanceAbility, ConformanceSetup, StoreUnderTest } from "./store-under-test.ts";
export { createXorCodec } from "./xor-codec.ts";
