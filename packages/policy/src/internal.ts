// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export type { AppliedStep, StoredSession } from "./apply-retention.ts";
export { planSessionReset, resetBeforeTurn, sendDenialOf } from "./before-turn.ts";
export type { DoneReset, ResetBeforeTurn, ResetTimes, SessionResetPlan } from "./before-turn.ts";
export { resetEntry } from "./reset-entry.ts";
export type { RetentionStep } from "./plan-retention.ts";
export type { PolicyProblem } from "./policy-problem.ts";
export { neverReset } from "./reset-policy.ts";
export { openSendPolicy } from "./send-policy.ts";
export type { SendPolicyMode } from "./send-policy.ts";
export { policySettings } from "./settings.ts";
export { resolveGroupActivation } from "./group-activation.ts";
export type { GroupActivation } from "./group-activation.ts";
export { readQueueSettings } from "./queue-settings.ts";
export type { QueueBehavior, QueueSettings } from "./queue-settings.ts";
