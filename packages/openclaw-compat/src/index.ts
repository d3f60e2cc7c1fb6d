export { cacheTtlFrom, createOpenclawSessions } from "./openclaw-sessions.ts";
export type { OpenclawSessions, OpenclawSessionsOptions } from "./openclaw-sessions.ts";
export {
  appendAssistantMessageToSessionTranscript,
  clearSessionStoreCacheForTest,
  loadSessionStore,
  recordSessionMetaFromInbound,
  resolveDefaultSessionStorePath,
  resolveSendPolicy,
  resolveSessionTranscriptPath,
  resolveSessionTranscriptsDirForAgent,
  resolveStorePath,
  saveSessionStore,
  updateLastRoute,
  updateSessionStore,
  updateSessionStoreEntry,
  withSessionStoreLock,
} from "./session-functions.ts";
export type { LoadSessionStoreOptions } from "./session-store-file.ts";
export type { LockOptions } from "./store-lock.ts";
