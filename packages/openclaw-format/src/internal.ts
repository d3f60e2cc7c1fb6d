// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export type { DirectoryLayout, ListedName } from "./detect-format.ts";
export { createIndexMemberScanner } from "./index-members.ts";
export { attachEnvelopeText, envelopeText, readPlainEnvelope } from "./line-envelope.ts";
export { readIndexed } from "./session-index.ts";
export { strangeTranscript } from "./strange-transcript.ts";
export { agentOfSessionsDir, archiveFileName } from "./transcript-file-name.ts";
export type { SessionFileName } from "./transcript-file-name.ts";
export type { TranscriptHeader } from "./transcript-header.ts";
export {
  joinPath,
  resolveDefaultStorePath,
  resolveSessionFile,
  resolveSessionsDir,
  resolveTranscriptPath,
  transcriptFileNameOf,
} from "./transcript-paths.ts";
export type { LinePlace } from "./transcript-reader.ts";
export { FindingLog } from "./finding-log.ts";
export { maxRecordDepth, parseLine } from "./parse-line.ts";
export type { ParsedLine, UnparsedReason } from "./parse-line.ts";
export { isoTime, readTimeMs } from "./read-time.ts";
export { isUsableRecordId, placeId } from "./record-id-book.ts";
