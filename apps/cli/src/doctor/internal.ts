// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export type { TranscriptRepair } from "./check-files.ts";
export { inspectSession } from "@throughline/transfer/internal";
