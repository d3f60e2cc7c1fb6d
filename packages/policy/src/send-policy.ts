import { join, PolicyReader, type Fields } from "./policy-problem.ts";

/** States the answer of a send policy. */
export type SendAction = "allow" | "deny";

/** Sets how rules are weighed: the first matching rule decides, or a matching deny overrides every allow. */
export type SendPolicyMode = "first-match" | "deny-overrides";

/** Every field that is present must match; a match without fields covers every session. Case does not matter. */
export interface SendPolicyMatch {
  /** Matches the channel of the session by its name. */
  readonly channel?: string;
  /** Accepts `direct`, `dm` (the same), `group` or `channel`. */
  readonly chatType?: string;
  /** Matches the start of the key, with or without its `agent:<id>:`. */
  readonly keyPrefix?: string;
  /** Matches the start of the whole key only. */
  readonly rawKeyPrefix?: string;
}

/** Answers for the sessions that it matches. */
interface SendPolicyRule {
  /** A rule without conditions matches every session. */
  readonly match: SendPolicyMatch;
  /** States the answer when the rule matches. @default "allow" */
  readonly action: SendAction;
}

/** Holds the rules that decide whether a session may send. */
export interface SendPolicy {
  /** Sets how matching rules are weighed. */
  readonly mode: SendPolicyMode;
  /** Sets the answer when no rule matches. */
  readonly default: SendAction;
  /** Holds the rules in the order of the configuration. */
  readonly rules: readonly SendPolicyRule[];
}

export const openSendPolicy: SendPolicy = { mode: "first-match", default: "allow", rules: [] };

const chatTypes: readonly string[] = ["direct", "dm", "group", "channel"];
const matchFields = ["channel", "chatType", "keyPrefix", "rawKeyPrefix"] as const;

/**
 * Reads a `session.sendPolicy` block: `{default, rules: [{match, action}]}`, with `mode` as an extension.
 * `modeWhenUnstated` is `deny-overrides` for a block that was written for OpenClaw or ClawCode. Both programs weigh
 * rules that way, whatever their documents state. An invalid block is refused whole, because half a policy would let
 * through what it was written to stop.
 * @throws {ThroughlineError} CONFIG_INVALID naming every field that is wrong
 */
export function readSendPolicy(value: unknown, modeWhenUnstated: SendPolicyMode = "first-match"): SendPolicy {
  const reader = new PolicyReader();
  const fields = reader.fields(value, "", ["mode", "default", "rules"]);
  const policy: SendPolicy = {
    mode: reader.choice(fields, "", "mode", ["first-match", "deny-overrides"] as const) ?? modeWhenUnstated,
    default: reader.choice(fields, "", "default", ["allow", "deny"] as const) ?? "allow",
    rules: readRules(reader, fields["rules"]),
  };
  reader.assertSound("sendPolicy");
  return policy;
}

function readRules(reader: PolicyReader, rules: unknown): readonly SendPolicyRule[] {
  if (rules === undefined) return [];
  if (!Array.isArray(rules)) {
    reader.say("rules", rules, "a list of {match, action}");
    return [];
  }
  return rules.map((rule: unknown, index) => {
    const path = `rules[${index}]`;
    const fields = reader.fields(rule, path, ["match", "action"]);
    return {
      match: fields["match"] === undefined ? {} : readMatch(reader, fields["match"], join(path, "match")),
      action: reader.choice(fields, path, "action", ["allow", "deny"] as const) ?? "allow",
    };
  });
}

function readMatch(reader: PolicyReader, value: unknown, path: string): SendPolicyMatch {
  const fields: Fields = reader.fields(value, path, matchFields);
  const found = matchFields.flatMap((name) => {
    const text = reader.text(fields, path, name);
    // A rule for another type would match no session, so a message that it denies would be sent.
    if (name === "chatType" && text !== null && !chatTypes.includes(text.toLowerCase()))
      reader.say(join(path, name), text, `one of ${chatTypes.join(", ")}`);
    return text === null ? [] : [[name, text] as const];
  });
  return Object.fromEntries(found);
}
