// What the packages of Throughline share with each other. It may change in any release and is not part of the public interface.
export { summarizerSettings } from "./settings.ts";
export type { BreakerStatus, SummarizerBreakers } from "./summarizer-breakers.ts";
export type { ChainedSummarizer } from "./summarizer-chain.ts";
