export { createChatStore } from "./chat-store.ts";
export type { ChatStore, ChatStoreOptions } from "./chat-store.ts";
export { throughlineMiddleware } from "./middleware.ts";
export type { ThroughlineMiddlewareOptions } from "./middleware.ts";
