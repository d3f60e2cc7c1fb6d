export { decodeLine, encodeLine } from "./decode-line.ts";
export { attachEnvelope, detachEnvelope } from "./line-envelope.ts";
export type { DetachedLine, LineEnvelope } from "./line-envelope.ts";
export { createLineSplitter } from "./line-splitter.ts";
export type { LineSplitter, LineSplitterOptions, SplitLine } from "./line-splitter.ts";
export type { UnparsedReason } from "./parse-line.ts";
export type { TranscriptHeader } from "./transcript-header.ts";
export { createTranscriptReader } from "./transcript-reader.ts";
export type { LinePlace, TranscriptLine, TranscriptReader, TranscriptReaderOptions } from "./transcript-reader.ts";
