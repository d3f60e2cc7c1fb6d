export { createChatStore } from "./chat-store.ts";
export type { ChatStore, ChatStoreOptions } from "./chat-store.ts";
export { throughlineMiddleware } from "./middleware.ts";
export type { ThroughlineMiddleware, ThroughlineMiddlewareOptions } from "./middleware.ts";
