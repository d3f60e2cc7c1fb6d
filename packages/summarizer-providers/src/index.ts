export { createChatSummarizer } from "./chat-summarizer.ts";
export type { ChatSummarizerOptions } from "./chat-summarizer.ts";
export { createExtractiveSummarizer } from "./extractive-summarizer.ts";
export type { ExtractiveSummarizerOptions } from "./extractive-summarizer.ts";
export { createSummarizerBreakers } from "./summarizer-breakers.ts";
export { createSummarizerChain } from "./summarizer-chain.ts";
export type { SummarizerChainOptions } from "./summarizer-chain.ts";
