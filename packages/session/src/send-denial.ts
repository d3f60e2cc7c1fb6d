import type { SessionRef, SessionEntry } from "@throughline/core";
import type { SendPolicy } from "@throughline/policy";
import type { SendPolicyAnswer } from "@throughline/policy/internal";
import { resolveGroupActivation, sendDenialOf } from "@throughline/policy/internal";

/**
 * States why the send policy denies an answer. The source is the session's own `sendPolicy`, a rule by its index, or
 * the default of the policy. It may also be the entry's `groupActivation`, for messages that do not mention the agent.
 */
export interface SendDenial extends Pick<SendPolicyAnswer, "ruleIndex" | "mode"> {
  /**
   * Names one of the sources of `resolveSendPolicy`, or `group-activation` for messages that do not mention the agent.
   */
  readonly source: SendPolicyAnswer["source"] | "group-activation";
}

/** Returns null when the agent may answer in the session. */
export function sendDenial(
  policy: SendPolicy | null,
  { ref, entry }: { readonly ref: SessionRef; readonly entry: SessionEntry },
  isMentioned: boolean,
): SendDenial | null {
  const denial = sendDenialOf({ ref, entry }, policy);
  if (denial !== null) return denial;
  if (isMentioned || resolveGroupActivation({ key: ref.key, entry }).activation === "always") return null;
  return { source: "group-activation", ruleIndex: null, mode: null };
}
