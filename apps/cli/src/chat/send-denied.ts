import { ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import type { SendDenial } from "@throughline/session/internal";
import type { Conversation } from "@throughline/agent/internal";
import { sendPolicyText } from "./send-policy-text.ts";

export function sendDenied(
  { ref, session }: Pick<Conversation, "ref" | "session">,
  denial: SendDenial,
): ThroughlineError {
  const why = sendPolicyText(denial, session?.entry.sendPolicy);
  const allow = `\`throughline entry ${shellWord(ref.key)} set sendPolicy allow\` allows answers in this session`;
  const show = denial.source === "session" ? "" : `\`throughline policy ${shellWord(ref.key)}\` shows the policy; `;
  return new ThroughlineError(
    "SEND_DENIED",
    `The agent may not answer in ${JSON.stringify(ref.key)} (${why}). The message is stored.`,
    { details: { ...ref, ...denial }, remedy: `${show}${allow}.` },
  );
}
