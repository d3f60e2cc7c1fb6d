export { loadAgentQuery } from "./agent-query.ts";
export type { AgentQuery } from "./agent-query.ts";
export { createSdkConversation } from "./sdk-conversation.ts";
export type { SdkConversation, SdkConversationOptions, SdkRun, SendOptions } from "./sdk-conversation.ts";
export { readSdkSessionId, withSdkSessionId } from "./sdk-session-id.ts";
export { createClaudeSessionStore } from "./session-store.ts";
export type { ClaudeSessionStore, ClaudeSessionStoreOptions } from "./session-store.ts";
