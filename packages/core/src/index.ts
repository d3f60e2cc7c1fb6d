export { createAgentScope } from "./agent-scope.ts";
export { appendOnce } from "./append-once.ts";
export { peerSessionKey } from "./build-session-key.ts";
export type { PayloadCodec } from "./codec.ts";
export { defineTool } from "./define-tool.ts";
export { endSession } from "./end-session.ts";
export type { ErrorCode } from "./error-codes.ts";
export type { Finding } from "./finding.ts";
export { messagesOf, recordsOf } from "./known-records.ts";
export { openSession } from "./open-session.ts";
export type { OpenSessionOptions } from "./open-session.ts";
export type {
  AgentTool,
  AgentToolCall,
  AgentToolResult,
  ChatDelta,
  ChatModel,
  ChatReply,
  ChatRequest,
  Clock,
  Embedder,
  RandomSource,
  RecordIds,
  Summarizer,
  SummaryReply,
  SummaryRequest,
  ToolDefinition,
} from "./ports.ts";
export { readWindow } from "./read-window.ts";
export type { AppendDraft, RecordDraft } from "./record-draft.ts";
export { isRecordOfType } from "./record.ts";
export type {
  AssistantMessage,
  ImageBlock,
  Message,
  SessionRecord,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
  ToolResultMessage,
  Usage,
  UserMessage,
} from "./record.ts";
export { redactRecords } from "./redact-records.ts";
export { assistantMessage, customRecord, toolCalls, toolResult, userMessage } from "./session-draft.ts";
export type { SessionEntry } from "./session-entry.ts";
export type { SessionEvent, SessionEventListener } from "./session-event.ts";
export { parseSessionKey } from "./session-key.ts";
export type { ParsedSessionKey } from "./session-key.ts";
export { sessionRef } from "./session-ref.ts";
export type { SessionRef } from "./session-ref.ts";
export type { SessionHead, SessionState } from "./session-state.ts";
export type {
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
} from "./session-store.ts";
export type { Durability, StoreCapabilities } from "./store-capabilities.ts";
export type {
  FilesFacet,
  ForkFacet,
  MaintenanceFacet,
  PartialReply,
  PartialsFacet,
  SearchFacet,
  SearchHit,
  SearchQuery,
  WatchFacet,
} from "./store-facets.ts";
export type { RecordPage, StoredRecord } from "./stored-records.ts";
export type { VectorsFacet } from "./vectors-facet.ts";
export { ThroughlineError, hasErrorCode } from "./throughline-error.ts";
export type { OpenTurn, TurnRequest } from "./turn-lease.ts";
