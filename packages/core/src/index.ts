export type { CodecContext, PayloadCodec } from "./codec.ts";
export { defineTool } from "./define-tool.ts";
export type { DefineToolOptions, JsonObjectSchema, ToolArguments, ToolInput } from "./define-tool.ts";
export { errorCodes } from "./error-codes.ts";
export type { ErrorCode, ErrorCodeEntry } from "./error-codes.ts";
export { findRecordProblem } from "./find-record-problem.ts";
export type { RecordProblem } from "./find-record-problem.ts";
export { createFinding, findingCodes } from "./finding.ts";
export type { Finding, FindingCode, FindingPlace, FindingRule, FindingSeverity } from "./finding.ts";
export type { ForkSessionOptions } from "./fork-session.ts";
export { isSideRecord } from "./is-side-record.ts";
export { loadExisting, openSession, resetSession, updateEntry } from "./open-session.ts";
export type { OpenedSession, OpenSessionOptions, ResetSessionOptions } from "./open-session.ts";
export type {
  AgentTool,
  AgentToolCall,
  AgentToolResult,
  ChatDelta,
  ChatModel,
  ChatReply,
  ChatRequest,
  Clock,
  Logger,
  RandomSource,
  RecordIds,
  Summarizer,
  SummaryReply,
  SummaryRequest,
  ToolDefinition,
} from "./ports.ts";
export { readWindow } from "./read-window.ts";
export type { RecordWindow } from "./read-window.ts";
export type { AppendDraft, RecordDraft, RecordSource, SourcedDraft } from "./record-draft.ts";
export { isRecordOfType } from "./record.ts";
export type {
  AssistantMessage,
  BashExecutionMessage,
  Checkpoint,
  CustomRoleMessage,
  ImageBlock,
  KnownRecordType,
  Message,
  RecordFields,
  RecordOf,
  SessionRecord,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
  ToolResultMessage,
  UnknownBlock,
  UnknownRoleMessage,
  Usage,
  UserMessage,
} from "./record.ts";
export { redactRecords } from "./redact-records.ts";
export { assistantMessage, customRecord, toolResult, userMessage } from "./session-draft.ts";
export type {
  DraftContent,
  KnownDraft,
  MessageDraft,
  NewAssistantMessage,
  NewMessage,
  OwnDraft,
  SessionDraft,
} from "./session-draft.ts";
export { patchEntry } from "./session-entry.ts";
export type { DeliveryContext, QueueMode, SessionEntry, SessionOrigin } from "./session-entry.ts";
export type { SessionEvent, SessionEventListener } from "./session-event.ts";
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
  ReadPayload,
  RecordFor,
  RecordHead,
  RecordPage,
  RedactOptions,
  RedactResult,
  RemoveOptions,
  SaveOptions,
  SessionHead,
  SessionPage,
  StoreLockOptions,
  SessionState,
  SessionStore,
  SourcedRecord,
  StoredRecord,
} from "./session-store.ts";
export type { Durability, StoreCapabilities, StoreLimits } from "./store-capabilities.ts";
export type {
  ForkFacet,
  MaintenanceFacet,
  RebuiltFile,
  SearchFacet,
  SearchHit,
  SearchQuery,
  SharedRecords,
  WatchFacet,
} from "./store-facets.ts";
export { isFromNewerVersion, throughlineDraft, throughlineKind } from "./throughline-record.ts";
export type { ThroughlineRecordKind } from "./throughline-record.ts";
export { hasErrorCode, ThroughlineError } from "./throughline-error.ts";
export type { ThroughlineErrorOptions, WriteOutcome } from "./throughline-error.ts";
export type { OpenTurn, TurnRequest } from "./turn-lease.ts";
