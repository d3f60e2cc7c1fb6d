// Functions that the packages of Throughline share. They may change in any release and are not public.
export { ChapterFinder } from "./chapters.ts";
export { scanText } from "./file-facts.ts";
export type { FileFacts, ListedChapter, ReplacedSecrets } from "./file-facts.ts";
export { createHtmlPrinter } from "./html-printer.ts";
export { createMarkdownPrinter } from "./markdown-printer.ts";
export type { RowOptions } from "./row-options.ts";
export type { TranscriptPrinter } from "./transcript-printer.ts";
export { transcriptLevels } from "./transcript-row.ts";
export { viewAttributes, viewTags } from "./view-tree.ts";
export type { TranscriptLevel, TranscriptRow } from "./transcript-row.ts";
export { TranscriptRows } from "./transcript-rows.ts";
