export { decodeLine, encodeLine } from "./decode-line.ts";
export { attachEnvelope, detachEnvelope, readPlainEnvelope } from "./line-envelope.ts";
export type { DetachedLine, LineEnvelope } from "./line-envelope.ts";
export { detectDirectoryLayout, detectLineFormat } from "./detect-format.ts";
export { strangeTranscript } from "./strange-transcript.ts";
export type { DirectoryLayout, ListedName, TranscriptFormat } from "./detect-format.ts";
export { createLineSplitter } from "./line-splitter.ts";
export type { LineSplitter, LineSplitterOptions, SplitLine } from "./line-splitter.ts";
export type { UnparsedReason } from "./parse-line.ts";
export type { TranscriptHeader } from "./transcript-header.ts";
export { createTranscriptReader } from "./transcript-reader.ts";
export type { LinePlace, TranscriptLine, TranscriptReader, TranscriptReaderOptions } from "./transcript-reader.ts";
export { readIndexed, readSessionIndex } from "./session-index.ts";
export { createIndexMemberScanner } from "./index-members.ts";
export type { IndexMember, IndexMemberScanner } from "./index-members.ts";
export type { IndexedSession, SessionIndex, SessionIndexShape } from "./session-index.ts";
export { readSessionsJson, sessionsJsonPieces } from "./sessions-json.ts";
export type { SessionsJson } from "./sessions-json.ts";
export { agentOfSessionsDir, archiveFileName, classifySessionFile } from "./transcript-file-name.ts";
export type { SessionFileKind, SessionFileName } from "./transcript-file-name.ts";
export {
  joinPath,
  resolveDefaultStorePath,
  resolveSessionFile,
  resolveSessionsDir,
  resolveStorePath,
  resolveTranscriptPath,
  transcriptFileNameOf,
} from "./transcript-paths.ts";
export type { ResolvedSessionFile, StorePathOptions } from "./transcript-paths.ts";
