export { createAgentSessions } from "./agent-sessions.ts";
export type { AgentSession } from "./agent-session.ts";
export type { AgentSessions } from "./agent-sessions.ts";
export type { AgentSessionStatus } from "./agent-status.ts";
export type { AgentSessionsOptions } from "./whole-turn-options.ts";
export type { WholeTurnEvent } from "./whole-turn-event.ts";
