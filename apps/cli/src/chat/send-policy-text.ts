import type { SendDenial } from "@throughline/session/internal";

/** `own` is the session's own `sendPolicy`. */
export function sendPolicyText({ source, ruleIndex, mode }: SendDenial, own: unknown): string {
  switch (source) {
    case "session":
      return `by the session's own sendPolicy, ${JSON.stringify(own)}`;
    case "rule":
      return `by rule ${(ruleIndex ?? 0) + 1} of session.sendPolicy (${mode})`;
    case "default":
      return "by the default of session.sendPolicy: no rule fits";
    case "group-activation":
      return "by the session's groupActivation: the message does not mention the agent";
    case "unset":
      return "nothing is configured, so everything may be sent";
  }
}
