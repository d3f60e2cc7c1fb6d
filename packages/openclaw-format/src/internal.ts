// Functions that the packages of Throughline share. They may change in any release and are not public.
export { encodeLine } from "./decode-line.ts";
export { detectDirectoryLayout, detectLineFormat } from "./detect-format.ts";
export type { DirectoryLayout, ListedName, TranscriptFormat } from "./detect-format.ts";
export { FindingLog } from "./finding-log.ts";
export { createIndexMemberScanner } from "./index-members.ts";
export { inspectIndex } from "./inspect-index.ts";
export {
  attachEnvelope,
  attachEnvelopeText,
  detachEnvelope,
  envelopeText,
  readPlainEnvelope,
} from "./line-envelope.ts";
export type { LineEnvelope } from "./line-envelope.ts";
export { numberedLines } from "./numbered-lines.ts";
export type { SplitLine } from "./line-splitter.ts";
export { maxRecordDepth, parseLine } from "./parse-line.ts";
export type { ParsedLine, UnparsedReason } from "./parse-line.ts";
export { isoTime, readTimeMs } from "./read-time.ts";
export { isUsableRecordId, placeId } from "./record-id-book.ts";
export { repairTranscript } from "./repair-transcript.ts";
export { readIndexed, readSessionIndex } from "./session-index.ts";
export type { IndexedSession } from "./session-index.ts";
export { sessionsJsonPieces } from "./sessions-json.ts";
export { strangeTranscript } from "./strange-transcript.ts";
export { agentOfSessionsDir, archivedFrom, archiveFileName, classifySessionFile } from "./transcript-file-name.ts";
export type { SessionFileName } from "./transcript-file-name.ts";
export type { TranscriptHeader } from "./transcript-header.ts";
export {
  joinPath,
  resolveDefaultStorePath,
  resolveSessionFile,
  resolveSessionsDir,
  resolveStorePath,
  resolveTranscriptPath,
  transcriptFileNameOf,
} from "./transcript-paths.ts";
export type { LinePlace, TranscriptLine, TranscriptReader } from "./transcript-reader.ts";
