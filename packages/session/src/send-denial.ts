import type { SessionRef, SessionEntry } from "@throughline/core";
import type { SendPolicy } from "@throughline/policy";
import type { SendPolicyAnswer } from "@throughline/policy/internal";
import { resolveGroupActivation, sendDenialOf } from "@throughline/policy/internal";

/**
 * What denied an answer: the session's own `sendPolicy`, a rule by its place, the default of the policy, or the entry's
 * `groupActivation` for words that do not mention the agent.
 */
export interface SendDenial extends Pick<SendPolicyAnswer, "ruleIndex" | "mode"> {
  /**
   * What denied the answer: one of the sources of `resolveSendPolicy`, or `group-activation` for words that do not
   * mention the agent.
   */
  readonly source: SendPolicyAnswer["source"] | "group-activation";
}

/** Null when the agent may answer in the session. */
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
