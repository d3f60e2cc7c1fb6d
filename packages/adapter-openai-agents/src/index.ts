export { createAgentsSession } from "./agents-session.ts";
export type { AgentsSession, AgentsSessionOptions } from "./agents-session.ts";
export { recordRun } from "./record-run.ts";
export type { RecordRunOptions } from "./record-run.ts";
