import { isAgentId, quote } from "./session-id.ts";
import { ThroughlineError } from "./throughline-error.ts";

/**
 * Session keys. Stores treat a key as opaque text; only this file reads meaning into it, and only at the door,
 * to find the agent. Writing what was parsed gives back the same text, always.
 *
 * Grammar: `agent:<agentId>:<rest>[:thread:<id> | :topic:<id>]` with rest one of `<mainKey>`, `direct:<peer>`,
 * `<channel>:<kind>:<peer>`, `<channel>:<account>:direct:<peer>`, `subagent:<path>`, `cron:<path>`. Also read:
 * the short form `<agentId>:<channel>:<peer>`, a runtime's own prefix (`goclaw:main:main`), and other texts,
 * which stay opaque and belong to no agent by themselves.
 */
export type PeerKind = "direct" | "group" | "channel";

/** The part of a key behind `agent:<id>:`. */
type SessionKeyRest =
  /** The agent's main session. */
  | {
      readonly kind: "main";
      /** The name of the main session, usually `main`. */
      readonly mainKey: string;
    }
  /** A conversation with a person, a group or a channel. */
  | {
      readonly kind: "peer";
      /** The channel, such as `telegram`; null where the key names none. */
      readonly channel: string | null;
      /** The account of the agent; null where the key names none. */
      readonly accountId: string | null;
      /** Whether it is a person, a group or a channel. */
      readonly peerKind: PeerKind;
      /** The kind as the key spells it: `dm` is an old spelling of `direct`. */
      readonly peerKindText: string;
      /** The channel's id of the person, group or channel. */
      readonly peerId: string;
    }
  /** A session of a sub-agent or of a scheduled job. */
  | {
      /** Whether a sub-agent or a scheduled job runs in the session. */
      readonly kind: "subagent" | "cron";
      /** Everything behind `subagent:` or `cron:`. */
      readonly path: string;
    }
  /** Any other text. */
  | {
      readonly kind: "other";
      /** Everything behind `agent:<id>:`. */
      readonly text: string;
    };

/** The thread or topic at the end of a key. */
export interface SessionKeySuffix {
  /** Whether the channel calls it a thread or a topic. */
  readonly kind: "thread" | "topic";
  /** The channel's id of it. */
  readonly id: string;
}

/** The parts of a session key, by their form. */
export type ParsedSessionKey =
  /** `agent:<id>:…`, the form of new keys. */
  | {
      readonly form: "agent";
      /** The agent that the key names. */
      readonly agentId: string;
      /** What the key names of the agent's sessions. */
      readonly rest: SessionKeyRest;
      /** The thread or topic; null where the key names none. */
      readonly suffix: SessionKeySuffix | null;
    }
  /** `<agentId>:<channel>:<peer>`, the form of older programs. */
  | {
      readonly form: "short";
      /** The agent that the key names. */
      readonly agentId: string;
      /** The channel, such as `telegram`. */
      readonly channel: string;
      /** The channel's id of the person. */
      readonly peerId: string;
    }
  /** A key with the prefix of another runtime, such as `goclaw:main:main`. */
  | {
      readonly form: "runtime";
      /** The prefix, which names the runtime. */
      readonly runtime: string;
      /** The agent that the key names. */
      readonly agentId: string;
      /** Everything behind the agent. */
      readonly text: string;
    }
  /** A key of no known form. It names no agent. */
  | {
      readonly form: "opaque";
      /** Always null. */
      readonly agentId: null;
      /** The whole key. */
      readonly text: string;
    };

const maxSessionKeyLength: number = 512;

/** First segments that name a program and not an agent; the second segment is the agent. */
const runtimePrefixes = new Set(["goclaw", "clawcode", "openclaw", "throughline"]);

const peerKinds = new Map<string, PeerKind>([
  ["direct", "direct"],
  ["dm", "direct"],
  ["group", "group"],
  ["channel", "channel"],
]);

// Control characters, bidirectional overrides and lone surrogates have no place in something people read and type.
const forbiddenCharacters = /[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** @throws {ThroughlineError} KEY_INVALID */
/** Splits a session key into its parts. @throws {ThroughlineError} SESSION_KEY_INVALID */
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

/** The text of a parsed key: `formatSessionKey(parseSessionKey(k)) === k`. */
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

/** The agent that a key names; null for one that names none, and for one that no session has. */
export function agentOfKey(key: string): string | null {
  try {
    return parseSessionKey(key).agentId;
  } catch (error) {
    if (ThroughlineError.isInstance(error)) return null;
    throw error;
  }
}

/** The spellings a stored key may have for the same session: `dm` and `direct` are one kind. The given one comes first. */
export function sessionKeyAliases(key: string): readonly string[] {
  const parsed = parseSessionKey(key);
  if (parsed.form !== "agent" || parsed.rest.kind !== "peer" || parsed.rest.peerKind !== "direct") return [key];
  const other = parsed.rest.peerKindText === "dm" ? "direct" : "dm";
  return [key, formatSessionKey({ ...parsed, rest: { ...parsed.rest, peerKindText: other } })];
}

/** Prefix match as policies use it: upper and lower case are the same on both sides. */
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
