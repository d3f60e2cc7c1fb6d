export type { CallFacts, CallOutcome } from "./call-record.ts";
export { createSessions } from "./create-sessions.ts";
export type { Session, SessionAppendOptions, SessionMessages } from "./session.ts";
export type { ResumeOptions, RunningTurn, RunTurnOptions, Turn } from "./turn.ts";
export type { InterruptedTurn, TurnOutcome } from "./turn-outcome.ts";
export { explainCalls, readHistoryCut } from "./explain-calls.ts";
export type { ExplainedCall, ExplainedChange } from "./explain-calls.ts";
export { importMessages } from "./import-messages.ts";
export type { ImportMessagesOptions } from "./import-messages.ts";
export { openTurn } from "./open-turn.ts";
export type { CloseTurnOptions, OpenedTurn, OpenTurnOptions } from "./open-turn.ts";
export { readCalls } from "./read-calls.ts";
export type { ReadCallsOptions } from "./read-calls.ts";
export { rebuildCall } from "./rebuild-call.ts";
export type { RebuiltCall } from "./rebuild-call.ts";
export { planSessionReset } from "@throughline/policy/internal";
export type { ResetTimes, SessionResetPlan } from "@throughline/policy/internal";
export type { SendDenial } from "./send-denial.ts";
export type { SessionEventListener, SessionTurnEvent } from "./session-event.ts";
export type {
  ApprovalFacts,
  ApproveTool,
  BeforeClose,
  ClosingDecision,
  CompactSession,
  SessionModel,
  SessionsOptions,
  StepContext,
  SystemPrompt,
  ToolCallRequest,
  ToolDecision,
  BeforeCloseContext,
  TurnStep,
} from "./session-options.ts";
export type { TurnOwners } from "./turn-owners.ts";
export type { TurnResponseOptions } from "./event-response.ts";
export type { TurnStream } from "./turn-stream.ts";
export type { TurnStreamEvent } from "./turn-stream-event.ts";
export type { SessionRow } from "@throughline/queries";
export type {
  DeleteSessionOptions,
  ForkSessionOptions,
  OpenSessionOptions,
  RenameSessionOptions,
  SessionList,
  SessionName,
  SessionQuery,
  Sessions,
} from "./sessions.ts";
export type { SessionTranscript, TranscriptOptions } from "./transcript.ts";
