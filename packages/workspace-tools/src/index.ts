export { createWorkspaceTools } from "./create-workspace-tools.ts";
export type { WorkspaceToolsOptions } from "./create-workspace-tools.ts";
