import type { SessionEntry } from "@throughline/core";
import { type ParsedSessionKey, parseSessionKey } from "@throughline/core";
import {
  sessionKeyAliases,
  sessionKeyHasPrefix,
  optionKinds,
  type OptionKind,
  type OptionTable,
  assertKnownOptions,
} from "@throughline/core/internal";
import type { SendAction, SendPolicy, SendPolicyMatch, SendPolicyMode } from "./send-policy.ts";

/** Describes the session for which a send policy is resolved. */
export interface SendPolicyQuestion {
  /** States the session's key, such as `agent:main:telegram:group:42`. */
  readonly key: string;
  /** Holds the session's entry; null means that the session has no entry yet. @default null */
  readonly entry?: SessionEntry | null | undefined;
  /** Holds the policy; null means that no policy is configured. */
  readonly policy: SendPolicy | null;
  /** Names the channel of the message about to be sent. @default from the entry, else from the key */
  readonly channel?: string | undefined;
  /**
   * Names the kind of conversation, such as `direct`, `group` or `channel`.
   * @default from the entry, else from the key
   */
  readonly chatType?: string | undefined;
}

/**
 * Names the part that decided: the session's setting, a rule, the policy's default. `unset` means that no policy
 * exists.
 */
type SendPolicySource = "session" | "rule" | "default" | "unset";

/** States the decision of a send policy, and the rule behind it. */
export interface SendPolicyAnswer {
  /** States whether the session may send. */
  readonly action: SendAction;
  /** Names the part of the policy that decided. */
  readonly source: SendPolicySource;
  /** States the index of the rule that decided, from 0. Null when no rule decided. */
  readonly ruleIndex: number | null;
  /** States how the rules were weighed; null without a policy. */
  readonly mode: SendPolicyMode | null;
  /** Names the channel that the rules were compared with; null when the channel is unknown. */
  readonly channel: string | null;
  /** States the chat type that the rules were compared with, `direct` for `dm`; null when unknown. */
  readonly chatType: string | null;
}

const { object, orNull, required, text } = optionKinds;

const sendPolicy: OptionKind = {
  expected: "a policy as readSendPolicy gives it, or null",
  accepts: (value) => value === null || (object.accepts(value) && Array.isArray((value as { rules?: unknown }).rules)),
};

export const sendQuestionTable: OptionTable<SendPolicyQuestion> = {
  key: required(text),
  entry: orNull(object),
  policy: required(sendPolicy),
  channel: text,
  chatType: text,
};

/**
 * Decides whether a message may be sent in a session. The order is: the session's `sendPolicy`, the rules, the default,
 * allow. A session value other than `allow` or `deny` denies, because its writer meant to decide something.
 * @throws {ThroughlineError} INPUT_INVALID for a question with another field or type, KEY_INVALID
 */
export function resolveSendPolicy(question: SendPolicyQuestion): SendPolicyAnswer {
  assertKnownOptions<SendPolicyQuestion>("resolveSendPolicy", question, sendQuestionTable, "question");
  const { policy } = question;
  const facts = factsOf(question);
  const answer = { mode: policy?.mode ?? null, channel: facts.channel, chatType: facts.chatType, ruleIndex: null };
  const own: unknown = question.entry?.["sendPolicy"];
  if (own !== undefined && own !== null) {
    return { ...answer, action: own === "allow" ? "allow" : "deny", source: "session" };
  }
  if (policy === null) return { ...answer, action: "allow", source: "unset" };
  const matching = policy.rules.flatMap((rule, index) => (matches(rule.match, facts) ? [{ rule, index }] : []));
  const deny = policy.mode === "deny-overrides" ? matching.find(({ rule }) => rule.action === "deny") : undefined;
  const decisive = deny ?? matching[0];
  if (decisive === undefined) return { ...answer, action: policy.default, source: "default" };
  return { ...answer, action: decisive.rule.action, source: "rule", ruleIndex: decisive.index };
}

/**
 * Resolves one policy under both modes. Different answers mean that the policy's writer should state the mode.
 * @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID
 */
export function compareSendPolicyModes(question: SendPolicyQuestion): {
  readonly firstMatch: SendPolicyAnswer;
  readonly denyOverrides: SendPolicyAnswer;
  readonly differ: boolean;
} {
  assertKnownOptions<SendPolicyQuestion>("compareSendPolicyModes", question, sendQuestionTable, "question");
  const under = (mode: SendPolicyMode): SendPolicyAnswer =>
    resolveSendPolicy({ ...question, policy: question.policy === null ? null : { ...question.policy, mode } });
  const firstMatch = under("first-match");
  const denyOverrides = under("deny-overrides");
  return { firstMatch, denyOverrides, differ: firstMatch.action !== denyOverrides.action };
}

/**
 * Returns true when an allow rule precedes a deny rule. Only then can a session get another answer under the other
 * mode.
 */
export function dependsOnMode(policy: SendPolicy): boolean {
  const firstAllow = policy.rules.findIndex(({ action }) => action === "allow");
  return firstAllow >= 0 && policy.rules.slice(firstAllow).some(({ action }) => action === "deny");
}

interface Facts {
  readonly keys: readonly string[];
  readonly channel: string | null;
  readonly chatType: string | null;
}

function factsOf({ key, entry, channel, chatType }: SendPolicyQuestion): Facts {
  const parsed = parseSessionKey(key);
  const origin = entry?.origin;
  return {
    keys: sessionKeyAliases(key),
    channel: firstText([
      channel,
      entry?.channel,
      entry?.deliveryContext?.channel,
      entry?.lastChannel,
      origin?.channel,
      origin?.provider,
      channelOf(parsed),
    ]),
    chatType: canonicalChatType(firstText([chatType, entry?.chatType, origin?.chatType, chatTypeOf(parsed)])),
  };
}

/**
 * Returns `direct`, `group`, `channel`, or the value of the entry. Returns null when neither the entry nor the key
 * states a type.
 */
export function chatTypeOfSession(key: string, entry: SessionEntry): string | null {
  return factsOf({ key, entry, policy: null }).chatType;
}

function matches(match: SendPolicyMatch, { keys, channel, chatType }: Facts): boolean {
  if (match.channel !== undefined && !sameText(match.channel, channel)) return false;
  if (match.chatType !== undefined && !sameText(canonicalChatType(match.chatType), chatType)) return false;
  const { keyPrefix, rawKeyPrefix } = match;
  if (rawKeyPrefix !== undefined && !keys.some((key) => sessionKeyHasPrefix(key, rawKeyPrefix))) return false;
  if (keyPrefix === undefined) return true;
  return keys.some((key) => sessionKeyHasPrefix(key, keyPrefix) || sessionKeyHasPrefix(withoutAgent(key), keyPrefix));
}

function withoutAgent(key: string): string {
  const parsed = parseSessionKey(key);
  return parsed.form === "agent" ? key.split(":").slice(2).join(":") : key;
}

function channelOf(key: ParsedSessionKey): string | null {
  if (key.form === "short") return key.channel;
  return key.form === "agent" && key.rest.kind === "peer" ? key.rest.channel : null;
}

function chatTypeOf(key: ParsedSessionKey): string | null {
  return key.form === "agent" && key.rest.kind === "peer" ? key.rest.peerKind : null;
}

function canonicalChatType(chatType: string | null): string | null {
  return chatType?.toLowerCase() === "dm" ? "direct" : chatType;
}

function firstText(values: readonly unknown[]): string | null {
  const found = values.find((value) => typeof value === "string" && value.trim() !== "");
  return typeof found === "string" ? found.trim() : null;
}

function sameText(one: string | null, other: string | null): boolean {
  return one !== null && other !== null && one.toLowerCase() === other.toLowerCase();
}
