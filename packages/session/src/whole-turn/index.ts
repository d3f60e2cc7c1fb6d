export { createAgentSessions } from "./agent-sessions.ts";
export type { AgentSessions } from "./agent-sessions.ts";
export type { AgentSessionsOptions, RetrySettings, WholeTurnCheckpoint } from "./whole-turn-options.ts";
export type { WholeTurnEvent, WholeTurnListener } from "./whole-turn-event.ts";
