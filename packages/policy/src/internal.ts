// Functions that the packages of Throughline share. They may change in any release and are not public.
export { readRetained } from "./apply-retention.ts";
export type { AppliedStep, StoredSession } from "./apply-retention.ts";
export { planSessionReset, resetBeforeTurn, sendDenialOf } from "./before-turn.ts";
export { resolveGroupActivation } from "./group-activation.ts";
export type { GroupActivation } from "./group-activation.ts";
export type { ResetPlan } from "./plan-reset.ts";
export type { RetentionPlan, RetentionStep } from "./plan-retention.ts";
export type { PolicyProblem } from "./policy-problem.ts";
export { readQueueSettings } from "./queue-settings.ts";
export type { QueueSettings } from "./queue-settings.ts";
export { resetEntry } from "./reset-entry.ts";
export { neverReset } from "./reset-policy.ts";
export { compareSendPolicyModes } from "./resolve-send-policy.ts";
export type { SendPolicyAnswer } from "./resolve-send-policy.ts";
export { openSendPolicy } from "./send-policy.ts";
export type { SendAction, SendPolicyMode } from "./send-policy.ts";
export { policySettings } from "./settings.ts";
