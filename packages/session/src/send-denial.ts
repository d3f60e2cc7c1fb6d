import type { SessionRef, SessionEntry } from "@throughline/core";
import { resolveSendPolicy, type SendPolicy, type SendPolicyAnswer } from "@throughline/policy";

/** What denied an answer: the session's own `sendPolicy`, a rule by its place, or the default of the policy. */
export type SendDenial = Pick<SendPolicyAnswer, "source" | "ruleIndex" | "mode">;

/** Null when the agent may answer in the session. */
export function sendDenial(
  policy: SendPolicy | null,
  { ref, entry }: { readonly ref: SessionRef; readonly entry: SessionEntry },
): SendDenial | null {
  const { action, source, ruleIndex, mode } = resolveSendPolicy({ key: ref.key, entry, policy });
  return action === "allow" ? null : { source, ruleIndex, mode };
}
