export { historyTargets } from "./history-targets.ts";
export type { HistoryTarget } from "./history-targets.ts";
export type { TargetMessages, TargetName, TargetOptions } from "./provider-mappings.ts";
export type { ProviderMapping } from "./replay-history.ts";
export type { IdRule, ProviderRules, TrailingAssistant } from "./replay-rules.ts";
export type { ReplayTurn } from "./replay-turn.ts";
