// This entry point is for the other Throughline packages only. It may change in any release and is not part of the
// public interface.
export type { TranscriptRepair } from "./check-files.ts";
export { inspectSession } from "@throughline/transfer/internal";
