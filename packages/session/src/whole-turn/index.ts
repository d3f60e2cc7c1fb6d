export { createAgentSessions } from "./agent-sessions.ts";
export type { AgentSession } from "./agent-session.ts";
export type { AgentSessions } from "./agent-sessions.ts";
export type {
  AgentSessionStatus,
  RetryStatus,
  SummarizerState,
  SummarizerStateSource,
  SummarizerStatus,
} from "./agent-status.ts";
export type {
  ManualCompaction,
  ManualCompactionOptions,
  InheritResult,
  InheritOptions,
  SessionCheckpoints,
  SessionBusy,
} from "./session-operations.ts";
export type {
  AgentSessionsOptions,
  DetectTopicChange,
  RetrySettings,
  TopicContext,
  WholeTurnCheckpoint,
} from "./whole-turn-options.ts";
export type { WholeTurnEvent, WholeTurnListener } from "./whole-turn-event.ts";
