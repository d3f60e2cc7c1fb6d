export { type MessageChunk, MessageChunks } from "./ai-sdk/message-chunks.ts";
export { replyFactsOf, ReplyParts } from "./ai-sdk/reply-parts.ts";
export {
  agentItemAsStored,
  isAgentCall,
  isAgentResult,
  isSameAgentItem,
  plainJson,
  sameItems,
  withBytes,
} from "./openai-agents/plain-items.ts";
export { promptMessageFor } from "./ai-sdk/write-prompt-messages.ts";
export { promptDrafts, replyDrafts, type PromptChange, type ReplyFacts } from "./ai-sdk/prompt-steps.ts";
export { LineMirror, lineText, type MirroredLines } from "./claude-code/line-mirror.ts";
export { loggedLines, type LinedSession, type LoggedLine } from "./claude-code/logged-lines.ts";
export { compactAgentItems, cutAgentItems, readAgentItems, replaceAgentCall } from "./openai-agents/agent-history.ts";
export { isLangchainMessage } from "./langgraph/live-messages.ts";
export { cutLiveItems, liveNote, removedTypeOf } from "./live/cut-items.ts";
export { adkEvents, aiSdkMessages, aiSdkPrompt, langchainMessages, openAiAgentsItems } from "./live/live-formats.ts";
export { adkRecordId, storeAdkEvent } from "./adk/adk-history.ts";
export type {
  LiveChange,
  LiveDrafts,
  LiveFormat,
  LiveItem,
  LiveItemsOptions,
  LivePlace,
  LiveSession,
} from "./live/live-format.ts";
