export { mainSessionKey, peerSessionKey, sessionKeySlug, subagentSessionKey } from "./build-session-key.ts";
export type { DirectMessageScope, PeerKeyOptions } from "./build-session-key.ts";
export { isAgentId, isSessionId } from "./session-id.ts";
export {
  formatSessionKey,
  maxSessionKeyLength,
  parseSessionKey,
  sessionKeyAliases,
  sessionKeyHasPrefix,
} from "./session-key.ts";
export type { ParsedSessionKey, PeerKind, SessionKeyRest, SessionKeySuffix } from "./session-key.ts";
