import type { SessionEntry } from "@throughline/core";
import { readSendPolicy, resolveSendPolicy } from "@throughline/policy";
import { type SendAction, type SendPolicyMode } from "@throughline/policy/internal";

/** Parameters of `resolveSendPolicy`. */
export interface SendPolicyParams {
  /** A configuration with `session.sendPolicy`. */
  readonly cfg?: {
    /** The `session` block of the configuration. */
    readonly session?: {
      /** The policy as it is written; without one only the entry's own `sendPolicy` counts. */
      readonly sendPolicy?: unknown;
    };
  } | null;
  /** The session's entry, whose own `sendPolicy` wins over the rules; null for a session without one. @default null */
  readonly entry?: SessionEntry | null;
  /** The session's key, such as `agent:main:main`. @default none: no rule for keys applies */
  readonly sessionKey?: string;
  /** The channel of the message. @default from the entry, else from the key */
  readonly channel?: string;
  /** The kind of conversation. @default from the entry, else from the key */
  readonly chatType?: string;
}

/** The name that OpenClaw gives a session that nothing names. */
const noKey = "unknown";

/** @throws {ThroughlineError} CONFIG_INVALID for a policy that cannot be understood */
export function resolvePolicy(
  { cfg, entry, sessionKey, channel, chatType }: SendPolicyParams,
  mode?: SendPolicyMode,
): SendAction {
  const written = cfg?.session?.sendPolicy;
  const policy = written === undefined || written === null ? null : readSendPolicy(written, mode);
  const stated = Object.fromEntries(Object.entries({ channel, chatType }).filter(([, value]) => value !== undefined));
  return resolveSendPolicy({ key: sessionKey ?? noKey, entry: entry ?? null, policy, ...stated }).action;
}
