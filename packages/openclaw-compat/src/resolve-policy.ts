import type { SessionEntry } from "@throughline/core";
import { readSendPolicy, resolveSendPolicy, type SendAction } from "@throughline/policy";
import { type SendPolicyMode } from "@throughline/policy/internal";

export interface SendPolicyParams {
  /** A configuration with `session.sendPolicy`. */
  readonly cfg?: { readonly session?: { readonly sendPolicy?: unknown } } | null;
  readonly entry?: SessionEntry | null;
  readonly sessionKey: string;
  readonly channel?: string;
  readonly chatType?: string;
}

/** @throws {ThroughlineError} CONFIG_INVALID for a policy that cannot be understood */
export function resolvePolicy(
  { cfg, entry, sessionKey, channel, chatType }: SendPolicyParams,
  mode?: SendPolicyMode,
): SendAction {
  const written = cfg?.session?.sendPolicy;
  const policy = written === undefined || written === null ? null : readSendPolicy(written, mode);
  const stated = Object.fromEntries(Object.entries({ channel, chatType }).filter(([, value]) => value !== undefined));
  return resolveSendPolicy({ key: sessionKey, entry: entry ?? null, policy, ...stated }).action;
}
