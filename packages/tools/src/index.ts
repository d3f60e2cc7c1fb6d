export { createSessionTools } from "./session/create-session-tools.ts";
export type { SessionToolsOptions } from "./session/create-session-tools.ts";
export { createWorkspaceTools } from "./workspace/create-workspace-tools.ts";
export type { WorkspaceToolsOptions } from "./workspace/create-workspace-tools.ts";
export { createMemorySearchTool } from "./workspace/memory-search-tool.ts";
export type { MemorySearchOptions } from "./workspace/memory-search-tool.ts";
