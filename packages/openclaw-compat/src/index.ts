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
