import type { SessionEntry } from "@throughline/core";
import { readSendPolicy, resolveSendPolicy } from "@throughline/policy";
import type { SendAction, SendPolicyMode } from "@throughline/policy/internal";

/** Holds the parameters of `resolveSendPolicy`. */
export interface SendPolicyParams {
  /** Holds a configuration with `session.sendPolicy`. */
  readonly cfg?:
    | {
        /** Holds the `session` block of the configuration. */
        readonly session?: {
          /** Holds the policy as written in the configuration. Without a policy, only the entry's `sendPolicy` counts. */
          readonly sendPolicy?: unknown;
        };
      }
    | null
    | undefined;
  /**
   * Holds the session's entry, whose `sendPolicy` takes precedence over the rules; null for a session without an entry.
   * @default null
   */
  readonly entry?: SessionEntry | null | undefined;
  /** States the session's key, such as `agent:main:main`. @default none: rules for keys do not apply */
  readonly sessionKey?: string | undefined;
  /** Names the channel of the message. @default the channel of the entry, else of the key */
  readonly channel?: string | undefined;
  /** Names the kind of conversation. @default the kind of the entry, else of the key */
  readonly chatType?: string | undefined;
}

/** OpenClaw gives this name to a session without a key, so the policy gets the same key. */
const noKey = "unknown";

/** @throws {ThroughlineError} CONFIG_INVALID for a policy that is not valid */
export function resolvePolicy(
  { cfg, entry, sessionKey, channel, chatType }: SendPolicyParams,
  mode?: SendPolicyMode,
): SendAction {
  const written = cfg?.session?.sendPolicy;
  const policy = written === undefined || written === null ? null : readSendPolicy(written, mode);
  const stated = Object.fromEntries(Object.entries({ channel, chatType }).filter(([, value]) => value !== undefined));
  return resolveSendPolicy({ key: sessionKey ?? noKey, entry: entry ?? null, policy, ...stated }).action;
}
