export { createAgentsSession } from "./agents-session.ts";
export type { AgentsSession, AgentsSessionOptions, SessionScope } from "./agents-session.ts";
export { recordRun } from "./record-run.ts";
export type { RecordedRunner, RecordRunOptions } from "./record-run.ts";
