export { createAgentScope } from "./agent-scope.ts";
export type { AgentScopeOptions } from "./agent-scope.ts";
export { appendOnce } from "./append-once.ts";
export type { AppendOnceOptions } from "./append-once.ts";
export { mainSessionKey, peerSessionKey, subagentSessionKey } from "./build-session-key.ts";
export type { PeerKeyOptions } from "./build-session-key.ts";
export type { CodecContext, PayloadCodec } from "./codec.ts";
export { defineTool } from "./define-tool.ts";
export type { DefineToolOptions } from "./define-tool.ts";
export { endSession } from "./end-session.ts";
export type { EndSessionOptions } from "./end-session.ts";
export { errorCodes } from "./error-codes.ts";
export type { ErrorCode, ErrorCodeEntry } from "./error-codes.ts";
export { createFinding } from "./finding.ts";
export type { Finding, FindingCode, FindingPlace } from "./finding.ts";
export { forkSession } from "./fork-session.ts";
export type { ForkSessionOptions } from "./fork-session.ts";
export { recordInbound, updateRoute } from "./inbound-message.ts";
export type { InboundMessage, RecordInboundOptions } from "./inbound-message.ts";
export { loadExisting, openSession, resetSession, updateEntry } from "./open-session.ts";
export type { OpenedSession, OpenSessionOptions, ResetSessionOptions } from "./open-session.ts";
export { openThread } from "./open-thread.ts";
export type { OpenThreadOptions } from "./open-thread.ts";
export type {
  AgentTool,
  AgentToolCall,
  AgentToolResult,
  ChatDelta,
  ChatModel,
  ChatReply,
  ChatRequest,
  Clock,
  Environment,
  RandomSource,
  RecordIds,
  SessionModel,
  Summarizer,
  SummaryReply,
  SummaryRequest,
  ToolDefinition,
} from "./ports.ts";
export { readWindow } from "./read-window.ts";
export type { RecordWindow } from "./read-window.ts";
export type { AppendDraft, RecordDraft, RecordSource, SourcedDraft } from "./record-draft.ts";
export { createRecordIds } from "./record-ids.ts";
export { isRecordOfType } from "./record.ts";
export type {
  AssistantMessage,
  BashExecutionMessage,
  Checkpoint,
  ImageBlock,
  KnownRecordType,
  Message,
  RecordOf,
  SessionRecord,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
  ToolResultMessage,
  UnknownBlock,
  Usage,
  UserMessage,
} from "./record.ts";
export { redactRecords } from "./redact-records.ts";
export { assistantMessage, customRecord, toolCalls, toolResult, userMessage } from "./session-draft.ts";
export type { MessageDraft, NewMessage, ReplyDraft, SessionDraft } from "./session-draft.ts";
export { patchEntry } from "./session-entry.ts";
export type { DeliveryContext, SessionEntry } from "./session-entry.ts";
export type { SessionEvent, SessionEventListener } from "./session-event.ts";
export { formatSessionKey, parseSessionKey } from "./session-key.ts";
export type { ParsedSessionKey } from "./session-key.ts";
export { sessionRef } from "./session-ref.ts";
export type { SessionAddress, SessionRef } from "./session-ref.ts";
export type {
  AppendedRecord,
  AppendOptions,
  AppendResult,
  ListQuery,
  LoadOptions,
  MoveAction,
  ReadOptions,
  RedactOptions,
  RedactResult,
  RemoveOptions,
  SaveOptions,
  SessionPage,
  SessionStore,
  StoreLockOptions,
} from "./session-store.ts";
export type { SessionHead, SessionState } from "./session-state.ts";
export type { ReadPayload, RecordFor, RecordHead, RecordPage, SourcedRecord, StoredRecord } from "./stored-records.ts";
export { spawnSession } from "./spawn-session.ts";
export type { SpawnLimits, SpawnSessionOptions } from "./spawn-session.ts";
export type { Durability, StoreCapabilities, StoreLimits } from "./store-capabilities.ts";
export type {
  ForkFacet,
  MaintenanceFacet,
  PartialReply,
  PartialsFacet,
  RebuiltFile,
  SearchFacet,
  SearchHit,
  SearchQuery,
  SharedRecords,
  WatchFacet,
} from "./store-facets.ts";
export { hasErrorCode, ThroughlineError } from "./throughline-error.ts";
export type { ThroughlineErrorOptions, WriteOutcome } from "./throughline-error.ts";
export type { OpenTurn, TurnRequest } from "./turn-lease.ts";
