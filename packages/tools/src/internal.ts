// Functions that the packages of Throughline share. They may change in any release and are not public.
export { MeaningIndex } from "./meaning/meaning-index.ts";
export type { BackfillEstimate, EmbedderBreaker } from "./meaning/meaning-index.ts";
export { createTokenBudget } from "./meaning/token-budget.ts";
export type { MeaningSearch } from "./search/meaning-search.ts";
export { lineText } from "./session/history-lines.ts";
export { plainText, quotedText, roleText } from "./session/plain-text.ts";
export { spawnSession } from "./session/spawn-session.ts";
export { hasHiddenName } from "./workspace/hidden-names.ts";
export type { MemoryHit } from "./workspace/memory-search-tool.ts";
export { createChangePlanner } from "./workspace/plan-change.ts";
export type { PlanChange, PlannedChange } from "./workspace/plan-change.ts";
export { readWholeFile } from "./workspace/read-whole-file.ts";
