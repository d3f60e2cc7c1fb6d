export type { EntriesByKey } from "./compat-scene.ts";
export type { MirrorParams, MirrorRefusal, MirrorResult } from "./mirror-message.ts";
export { cacheTtlFrom, createOpenclawSessions } from "./openclaw-sessions.ts";
export type { OpenclawSessions, OpenclawSessionsOptions } from "./openclaw-sessions.ts";
export type { SendPolicyParams } from "./resolve-policy.ts";
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
export type { InboundContext, InboundParams, LastRouteParams, UpdateEntryParams } from "./session-entries.ts";
export type { LoadSessionStoreOptions } from "./session-store-file.ts";
export type { LockOptions } from "./store-lock.ts";
