export { createWorkspaceTools } from "./create-workspace-tools.ts";
export type { WorkspaceToolsOptions } from "./create-workspace-tools.ts";
export { createMemorySearchTool } from "./memory-search-tool.ts";
export type { MemoryHit, MemorySearchOptions } from "./memory-search-tool.ts";
export type { PassageScorer } from "./passage-scorer.ts";
export { rankPassages } from "./rank-passages.ts";
export type { RankablePassage, RankedPassage } from "./rank-passages.ts";
