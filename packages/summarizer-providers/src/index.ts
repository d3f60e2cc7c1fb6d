export { breakerSteps } from "./breaker-steps.ts";
export type { BreakerState, BreakerStep } from "./breaker-steps.ts";
export { createChatSummarizer } from "./chat-summarizer.ts";
export type { ChatSummarizerOptions } from "./chat-summarizer.ts";
export { localSummaryModel } from "./local-summary-model.ts";
export { parseSummary } from "./parse-summary.ts";
export type { ParsedSummary } from "./parse-summary.ts";
export { createSummarizerBreakers } from "./summarizer-breakers.ts";
export type {
  BreakerEntry,
  BreakerSnapshot,
  BreakerStatus,
  SummarizerBreakers,
  SummarizerBreakersOptions,
} from "./summarizer-breakers.ts";
export { createSummarizerChain } from "./summarizer-chain.ts";
export type { ChainedSummarizer, FailedSummarizer, SummarizerChainOptions } from "./summarizer-chain.ts";
export type { SectionName, SummarySections } from "./summary-sections.ts";
