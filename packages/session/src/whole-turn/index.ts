export { createAgentSessions } from "./agent-sessions.ts";
export type { AgentSessions } from "./agent-sessions.ts";
export type {
  AgentSessionStatus,
  RetryStatus,
  SummarizerState,
  SummarizerStates,
  SummarizerStatus,
} from "./agent-status.ts";
export type {
  HandCompaction,
  HandCompactionOptions,
  Inheritance,
  InheritOptions,
  SessionCheckpoints,
  SessionIsBusy,
} from "./hand-work.ts";
export type {
  AgentSessionsOptions,
  DetectTopicChange,
  RetrySettings,
  TopicContext,
  WholeTurnCheckpoint,
} from "./whole-turn-options.ts";
export type { WholeTurnEvent, WholeTurnListener } from "./whole-turn-event.ts";
