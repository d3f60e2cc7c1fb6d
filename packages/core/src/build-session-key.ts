import { assertAgentId } from "./session-id.ts";
import { formatSessionKey, parseSessionKey, type PeerKind, type SessionKeySuffix } from "./session-key.ts";

/** How direct messages are told apart: by nothing, by peer, by channel and peer, by account too. */
export type DirectMessageScope = "main" | "per-peer" | "per-channel-peer" | "per-account-channel-peer";

export interface PeerKeyOptions {
  readonly agentId: string;
  readonly channel: string;
  readonly peerKind: PeerKind;
  readonly peerId: string;
  /** Used with dmScope `per-account-channel-peer`. */
  readonly accountId?: string;
  /** Applies to direct messages only. @default "per-channel-peer" */
  readonly dmScope?: DirectMessageScope;
  /** Names a thread or topic below the conversation. */
  readonly suffix?: SessionKeySuffix;
}

/** The key of an agent's main session. */
export function mainSessionKey(agentId = "main", mainKey = "main"): string {
  assertAgentId(agentId);
  return checked(`agent:${agentId}:${mainKey}`);
}

/** The key of a conversation with a peer. @throws {ThroughlineError} KEY_INVALID, AGENT_ID_INVALID */
export function peerSessionKey(options: PeerKeyOptions): string {
  assertAgentId(options.agentId);
  const scope = options.peerKind === "direct" ? (options.dmScope ?? "per-channel-peer") : "per-channel-peer";
  if (scope === "main") return mainSessionKey(options.agentId);
  const key = formatSessionKey({
    form: "agent",
    agentId: options.agentId,
    rest: {
      kind: "peer",
      channel: scope === "per-peer" ? null : options.channel,
      accountId: scope === "per-account-channel-peer" ? (options.accountId ?? "default") : null,
      peerKind: options.peerKind,
      peerKindText: options.peerKind,
      peerId: options.peerId,
    },
    suffix: options.suffix ?? null,
  });
  return checked(key);
}

/** The key of a session that another one spawned. */
export function subagentSessionKey(agentId: string, path: string): string {
  assertAgentId(agentId);
  return checked(`agent:${agentId}:subagent:${path}`);
}

/** Label text as one key segment: lower case, letters and digits of any script, the rest as single dashes. */
export function sessionKeySlug(label: string): string {
  const slug = label
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 64);
  return slug === "" ? "session" : slug;
}

function checked(key: string): string {
  parseSessionKey(key);
  return key;
}
