// Functions that the packages of Throughline share. They may change in any release and are not public.
export { adkRecordId, storeAdkEvent } from "./adk/adk-history.ts";
export { otherDecisions, requestedApprovals, withDecisions } from "./ai-sdk/message-approvals.ts";
export { MessageChunks } from "./ai-sdk/message-chunks.ts";
export type { MessageChunk } from "./ai-sdk/message-chunks.ts";
export { promptDrafts, replyDrafts } from "./ai-sdk/prompt-steps.ts";
export type { ReplyFacts } from "./ai-sdk/prompt-steps.ts";
export { ReplyParts, replyFactsOf } from "./ai-sdk/reply-parts.ts";
export { promptMessageFor } from "./ai-sdk/write-prompt-messages.ts";
export { LineMirror, lineText } from "./claude-code/line-mirror.ts";
export type { MirroredLines } from "./claude-code/line-mirror.ts";
export { loggedLines } from "./claude-code/logged-lines.ts";
export type { LinedSession } from "./claude-code/logged-lines.ts";
export type { DocumentPart } from "./document-units.ts";
export { foreignFileFormat, mayLookFlat } from "./foreign-file.ts";
export type { FileLayout, FormatPlace, FormatSample, StrayTitles, UnitPlace } from "./foreign-format.ts";
export type { KnownSession, SessionVersion } from "./format-database.ts";
export type { FormatTree, TreeFiles, TreePlace } from "./format-tree.ts";
export type { FormatLoss, WrittenSession } from "./format-writer.ts";
export { adapterOptionTable, adapterOptions } from "./framework-log/adapter-options.ts";
export type { AdapterOptions, SettledAdapterOptions } from "./framework-log/adapter-options.ts";
export { firstBatch, movesHead } from "./framework-log/first-batch.ts";
export { frameworkErrors, loadedOnce } from "./framework-log/framework-errors.ts";
export { createFrameworkLog } from "./framework-log/framework-log.ts";
export type { FrameworkLog, LogChange, LogPlace, LogView } from "./framework-log/framework-log.ts";
export { assertMaySend, beforeNextCall, beforeRun, keptOfRun, runPolicyTable } from "./framework-log/run-policy.ts";
export type { RunPlace, RunPolicyOptions } from "./framework-log/run-policy.ts";
export { frameworkSessionKey } from "./framework-log/session-key.ts";
export { loggedDecisions, noWait, waitingChange } from "./framework-log/waiting-calls.ts";
export type { DecidedCall, FrameworkCall, LoggedDecision, WaitChange } from "./framework-log/waiting-calls.ts";
export { createHeadSampler } from "./head-sampler.ts";
export { isLangchainMessage } from "./langgraph/live-messages.ts";
export { cutLiveItems, liveNote, removedTypeOf } from "./live/cut-items.ts";
export type { LiveItem, LiveItemsOptions, LivePlace } from "./live/live-format.ts";
export { adkEvents, aiSdkMessages, aiSdkPrompt, langchainMessages, openAiAgentsItems } from "./live/live-formats.ts";
export { isUuid } from "./made-ids.ts";
export { foreignFormatNames, writableFormatNames } from "./names.ts";
export type { ForeignFormatName, WritableFormatName } from "./names.ts";
export { compactAgentItems, cutAgentItems, readAgentItems, replaceAgentCall } from "./openai-agents/agent-history.ts";
export {
  agentItemAsStored,
  isAgentCall,
  isAgentResult,
  isSameAgentItem,
  plainJson,
  sameItems,
  withBytes,
} from "./openai-agents/plain-items.ts";
export { createTextSplitter } from "./text-units.ts";
