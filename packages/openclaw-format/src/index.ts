export { decodeLine } from "./decode-line.ts";
export { createLineSplitter } from "./line-splitter.ts";
export { createTranscriptReader } from "./transcript-reader.ts";
