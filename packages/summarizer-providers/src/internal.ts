// Functions that the packages of Throughline share. They may change in any release and are not public.
export { summarizerSettings } from "./settings.ts";
export type { BreakerStatus, SummarizerBreakers } from "./summarizer-breakers.ts";
export type { ChainedSummarizer } from "./summarizer-chain.ts";
