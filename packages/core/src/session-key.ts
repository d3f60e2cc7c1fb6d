import { isAgentId, quote } from "./session-id.ts";
import { ThroughlineError } from "./throughline-error.ts";

// Stores treat a key as opaque text. Only this file reads a meaning into a key, and only at an entry point, to find the
// agent. Formatting a parsed key always returns the same text.
//
// Grammar: `agent:<agentId>:<rest>[:thread:<id> | :topic:<id>]` with rest one of `<mainKey>`, `direct:<peer>`,
// `<channel>:<kind>:<peer>`, `<channel>:<account>:direct:<peer>`, `subagent:<path>`, `cron:<path>`. The parser also
// reads the short form `<agentId>:<channel>:<peer>` and a runtime's own prefix (`goclaw:main:main`). Any other text
// stays opaque and belongs to no agent by itself.

/** States whether a peer is one person, a group or a channel. */
export type PeerKind = "direct" | "group" | "channel";

/** Holds the part of a key after `agent:<id>:`. */
type SessionKeyRest =
  /** Names the agent's main session. */
  | {
      readonly kind: "main";
      /** States the name of the main session, usually `main`. */
      readonly mainKey: string;
    }
  /** Names a conversation with a person, a group or a channel. */
  | {
      readonly kind: "peer";
      /** Names the channel, such as `telegram`; null when the key names no channel. */
      readonly channel: string | null;
      /** Names the account of the agent; null when the key names no account. */
      readonly accountId: string | null;
      /** States whether the peer is a person, a group or a channel. */
      readonly peerKind: PeerKind;
      /** States the kind in the key's spelling: `dm` is an old spelling of `direct`. */
      readonly peerKindText: string;
      /** States the channel's id of the person, group or channel. */
      readonly peerId: string;
    }
  /** Names a session of a sub-agent or of a scheduled job. */
  | {
      /** States whether a sub-agent or a scheduled job runs in the session. */
      readonly kind: "subagent" | "cron";
      /** Holds everything after `subagent:` or `cron:`. */
      readonly path: string;
    }
  /** Holds any other text. */
  | {
      readonly kind: "other";
      /** Holds everything after `agent:<id>:`. */
      readonly text: string;
    };

/** Names the thread or topic at the end of a key. */
export interface SessionKeySuffix {
  /** States whether the channel calls it a thread or a topic. */
  readonly kind: "thread" | "topic";
  /** States the channel's id of the thread or topic. */
  readonly id: string;
}

/** Holds the parts of a session key; `form` decides which parts it has. */
export type ParsedSessionKey =
  /** Holds a key of the form `agent:<id>:…`, which new keys have. */
  | {
      readonly form: "agent";
      /** States the agent that the key names. */
      readonly agentId: string;
      /** Names the session among the agent's sessions. */
      readonly rest: SessionKeyRest;
      /** Names the thread or topic; null when the key names none. */
      readonly suffix: SessionKeySuffix | null;
    }
  /** Holds a key of the form `<agentId>:<channel>:<peer>`, which older programs write. */
  | {
      readonly form: "short";
      /** States the agent that the key names. */
      readonly agentId: string;
      /** Names the channel, such as `telegram`. */
      readonly channel: string;
      /** States the channel's id of the person. */
      readonly peerId: string;
    }
  /** Holds a key with the prefix of another runtime, such as `goclaw:main:main`. */
  | {
      readonly form: "runtime";
      /** States the prefix, which names the runtime. */
      readonly runtime: string;
      /** States the agent that the key names. */
      readonly agentId: string;
      /** Holds everything after the agent. */
      readonly text: string;
    }
  /** Holds a key of no known form, which names no agent. */
  | {
      readonly form: "opaque";
      /** Stays null, because the key names no agent. */
      readonly agentId: null;
      /** Holds the whole key. */
      readonly text: string;
    };

const maxSessionKeyLength: number = 512;

/** These first segments name a program, not an agent; the second segment is the agent. */
const runtimePrefixes = new Set(["goclaw", "clawcode", "openclaw", "throughline"]);

const peerKinds = new Map<string, PeerKind>([
  ["direct", "direct"],
  ["dm", "direct"],
  ["group", "group"],
  ["channel", "channel"],
]);

// People read and type keys, so control characters, bidirectional overrides and lone surrogates are refused.
const forbiddenCharacters = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/**
 * Splits a session key into its parts.
 * @throws {ThroughlineError} KEY_INVALID
 */
export function parseSessionKey(key: string): ParsedSessionKey {
  assertKeyText(key);
  const segments = key.split(":");
  const [first = "", second = ""] = segments;
  if (first === "agent") return parseAgentForm(key, segments);
  if (segments.length >= 3 && second !== "" && runtimePrefixes.has(first) && isAgentId(second)) {
    return { form: "runtime", runtime: first, agentId: second, text: segments.slice(2).join(":") };
  }
  if (segments.length >= 3 && segments.slice(0, 3).every((segment) => segment !== "") && isAgentId(first)) {
    return { form: "short", agentId: first, channel: second, peerId: segments.slice(2).join(":") };
  }
  return { form: "opaque", agentId: null, text: key };
}

/** Returns the text of a parsed key: `formatSessionKey(parseSessionKey(k)) === k`. */
export function formatSessionKey(key: ParsedSessionKey): string {
  switch (key.form) {
    case "agent": {
      const suffix = key.suffix === null ? "" : `:${key.suffix.kind}:${key.suffix.id}`;
      return `agent:${key.agentId}:${formatRest(key.rest)}${suffix}`;
    }
    case "short":
      return `${key.agentId}:${key.channel}:${key.peerId}`;
    case "runtime":
      return `${key.runtime}:${key.agentId}:${key.text}`;
    case "opaque":
      return key.text;
  }
}

/** Returns the agent that a key names; null for a key without an agent, and for a key that no session has. */
export function agentOfKey(key: string): string | null {
  try {
    return parseSessionKey(key).agentId;
  } catch (error) {
    if (ThroughlineError.isInstance(error)) return null;
    throw error;
  }
}

/**
 * Returns the spellings that a stored key may have for the same session, because `dm` and `direct` are one kind. The
 * given key comes first.
 */
export function sessionKeyAliases(key: string): readonly string[] {
  const parsed = parseSessionKey(key);
  if (parsed.form !== "agent" || parsed.rest.kind !== "peer" || parsed.rest.peerKind !== "direct") return [key];
  const other = parsed.rest.peerKindText === "dm" ? "direct" : "dm";
  return [key, formatSessionKey({ ...parsed, rest: { ...parsed.rest, peerKindText: other } })];
}

/** Policies compare prefixes without regard to case, so both sides are converted to lower case. */
export function sessionKeyHasPrefix(key: string, prefix: string): boolean {
  return key.toLowerCase().startsWith(prefix.toLowerCase());
}

function assertKeyText(key: unknown): asserts key is string {
  if (typeof key !== "string" || key === "" || key.length > maxSessionKeyLength) {
    throw invalidKey(key, `it must be text of 1 to ${maxSessionKeyLength} characters`);
  }
  if (forbiddenCharacters.test(key)) throw invalidKey(key, "it holds a control character or half a character");
  if (key.trim() !== key) throw invalidKey(key, "it begins or ends with white space");
}

function parseAgentForm(key: string, segments: readonly string[]): ParsedSessionKey {
  const [, agentId = ""] = segments;
  if (segments.length < 3) throw invalidKey(key, "agent:<agentId> must be followed by what names the session");
  if (!isAgentId(agentId)) throw invalidKey(key, `its agent id ${quote(agentId)} is not valid`);
  const { body, suffix } = splitSuffix(segments.slice(2));
  return { form: "agent", agentId, rest: parseRest(body), suffix };
}

function splitSuffix(segments: readonly string[]): { body: readonly string[]; suffix: SessionKeySuffix | null } {
  const kind = segments.at(-2);
  const id = segments.at(-1);
  const hasSuffix = segments.length >= 3 && (kind === "thread" || kind === "topic") && id !== undefined && id !== "";
  return hasSuffix ? { body: segments.slice(0, -2), suffix: { kind, id } } : { body: segments, suffix: null };
}

function parseRest(segments: readonly string[]): SessionKeyRest {
  const [first = "", second = "", third = ""] = segments;
  const text = segments.join(":");
  if (segments.length === 1) return { kind: "main", mainKey: first };
  if (first === "subagent" || first === "cron") return { kind: first, path: segments.slice(1).join(":") };
  const bareKind = peerKinds.get(first);
  if (bareKind === "direct") return peer(null, null, bareKind, first, segments.slice(1));
  const kind = peerKinds.get(second);
  if (kind !== undefined && segments.length >= 3) return peer(first, null, kind, second, segments.slice(2));
  const accountKind = peerKinds.get(third);
  if (accountKind === "direct" && segments.length >= 4)
    return peer(first, second, accountKind, third, segments.slice(3));
  return { kind: "other", text };
}

function peer(
  channel: string | null,
  accountId: string | null,
  peerKind: PeerKind,
  peerKindText: string,
  rest: readonly string[],
): SessionKeyRest {
  return { kind: "peer", channel, accountId, peerKind, peerKindText, peerId: rest.join(":") };
}

function formatRest(rest: SessionKeyRest): string {
  switch (rest.kind) {
    case "main":
      return rest.mainKey;
    case "peer":
      return [rest.channel, rest.accountId, rest.peerKindText, rest.peerId].filter((part) => part !== null).join(":");
    case "subagent":
    case "cron":
      return `${rest.kind}:${rest.path}`;
    case "other":
      return rest.text;
  }
}

function invalidKey(key: unknown, why: string): ThroughlineError {
  return new ThroughlineError("KEY_INVALID", `The session key ${quote(key)} cannot be used: ${why}.`, {
    outcome: "not-applied",
    details: { key },
  });
}
