export { createSdkConversation } from "./sdk-conversation.ts";
export type { SdkConversation, SdkConversationOptions } from "./sdk-conversation.ts";
export { createClaudeSessionStore } from "./session-store.ts";
export type { ClaudeSessionStore, ClaudeSessionStoreOptions } from "./session-store.ts";
