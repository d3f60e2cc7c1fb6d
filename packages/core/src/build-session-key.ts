import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { assertAgentId, quote } from "./session-id.ts";
import { formatSessionKey, parseSessionKey, type PeerKind, type SessionKeySuffix } from "./session-key.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** Sets what separates direct messages: nothing, the peer, channel and peer, or the account too. */
type DirectMessageScope = "main" | "per-peer" | "per-channel-peer" | "per-account-channel-peer";

/** Sets the parts of the key that `peerSessionKey` builds. */
export interface PeerKeyOptions {
  /** Names the agent in the key. */
  readonly agentId: string;
  /** Names the channel, such as `telegram`. The key holds it in lower case. */
  readonly channel: string;
  /** States whether the conversation is with one person, a group or a channel. */
  readonly peerKind: PeerKind;
  /** States the channel's id of the person, group or channel. */
  readonly peerId: string;
  /** Names the account, which only the dmScope `per-account-channel-peer` uses. */
  readonly accountId?: string | undefined;
  /** Sets what separates direct messages; groups and channels ignore it. @default "per-channel-peer" */
  readonly dmScope?: DirectMessageScope | undefined;
  /** Names a thread or topic below the conversation. */
  readonly suffix?: SessionKeySuffix | undefined;
}

const { oneOf, objectOf, required, text } = optionKinds;
const peerTable: OptionTable<PeerKeyOptions> = {
  agentId: required(text),
  channel: required(text),
  peerKind: required(oneOf(["direct", "group", "channel"])),
  peerId: required(text),
  accountId: text,
  dmScope: oneOf(["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]),
  suffix: objectOf<SessionKeySuffix>({ kind: required(oneOf(["thread", "topic"])), id: required(text) }),
};

/** Returns the key of an agent's main session. */
export function mainSessionKey(agentId = "main", mainKey = "main"): string {
  assertAgentId(agentId);
  return checked(`agent:${agentId}:${mainKey}`);
}

/**
 * Returns the key of a conversation with a peer.
 * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID, AGENT_ID_INVALID
 */
export function peerSessionKey(options: PeerKeyOptions): string {
  assertKnownOptions<PeerKeyOptions>("peerSessionKey", options, peerTable);
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

/** Returns the key of a session that another session spawned. */
export function subagentSessionKey(agentId: string, path: string): string {
  assertAgentId(agentId);
  return checked(`agent:${agentId}:subagent:${path}`);
}

/** People cannot read keys with a longer slug. */
const maxSlugLength = 64;

/**
 * Returns the key of the session that a label names: `agent:<agent>:cli:direct:<label-slug>`. Labels that differ only
 * in case, spaces or punctuation name the same session.
 *
 * @param label 1 to 512 characters, without white space at its ends
 * @throws {ThroughlineError} AGENT_ID_INVALID; KEY_INVALID for a label that a key cannot hold, that has no letter and
 * no digit, or whose slug exceeds 64 characters
 * @example
 * labelSessionKey("main", "My Project #1!"); // "agent:main:cli:direct:my-project-1"
 */
export function labelSessionKey(agentId: string, label: string): string {
  parseSessionKey(label);
  const slug = wordsOf(label).join("-");
  if (slug === "") throw invalidLabel(label, "it has no letter and no digit");
  if (slug.length > maxSlugLength)
    throw invalidLabel(label, `its key would be longer than ${maxSlugLength} characters`);
  return peerSessionKey({ agentId, channel: "cli", peerKind: "direct", peerId: slug });
}

/**
 * Converts a label to one key segment of at most 64 characters. The segment is in lower case and keeps the letters and
 * digits of any script, with dashes between words.
 */
export function sessionKeySlug(label: string): string {
  const slug = wordsOf(label).join("-").slice(0, maxSlugLength);
  // The cut may leave half a character or a dash at the end.
  const whole = slug.isWellFormed() ? slug : slug.slice(0, -1);
  return whole.replace(/-$/, "") || "session";
}

/** A mark, such as a vowel sign, belongs to the letter before it and must not separate words. */
function wordsOf(label: string): readonly string[] {
  return (
    label
      .normalize("NFKC")
      .toWellFormed()
      .toLowerCase()
      .match(/[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu) ?? []
  );
}

function invalidLabel(label: string, why: string): ThroughlineError {
  return new ThroughlineError("KEY_INVALID", `The label ${quote(label)} names no session: ${why}.`, {
    outcome: "not-applied",
    details: { label },
    remedy: "Use another label, or pass the session's key.",
  });
}

function checked(key: string): string {
  parseSessionKey(key);
  return key;
}
