export { applyRetention } from "./apply-retention.ts";
export { planReset } from "./plan-reset.ts";
export { planRetention } from "./plan-retention.ts";
export type { RetentionPolicy } from "./plan-retention.ts";
export { readResetPolicy } from "./reset-policy.ts";
export type { ResetPolicy } from "./reset-policy.ts";
export { resolveSendPolicy } from "./resolve-send-policy.ts";
export { readSendPolicy } from "./send-policy.ts";
export type { SendPolicy } from "./send-policy.ts";
