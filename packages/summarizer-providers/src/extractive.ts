export { createExtractiveSummarizer } from "./extractive-summarizer.ts";
export type { ExtractiveSummarizerOptions } from "./extractive-summarizer.ts";
