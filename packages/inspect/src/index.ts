export { inspectRecords } from "./inspect-records.ts";
export { inspectStore } from "./inspect-store.ts";
export type { InspectStoreOptions } from "./inspect-store.ts";
export { inspectTranscript } from "./inspect-transcript.ts";
export type { InspectTranscriptOptions, TranscriptReport } from "./inspect-transcript.ts";
export { mergeFindings, needsAttention } from "./merge-findings.ts";
export type { RecordPlace } from "./merge-findings.ts";
export { repairTranscript } from "./repair-transcript.ts";
export type { RepairTranscriptOptions } from "./repair-transcript.ts";
