import type { SettingFragment } from "@throughline/core/settings";

/** What configuration may say of who may send. */
export const policySettings: SettingFragment = {
  area: "session",
  fields: [
    {
      key: "sendPolicy",
      description: "Whether an agent may send in a session; null: always.",
      kind: { type: "block", shape: "{default, rules: [{match: {channel, chatType, keyPrefix}, action}]}" },
      default: null,
    },
    {
      key: "sendPolicyMode",
      description: "How rules are weighed where the block itself says no mode: the first that fits, or any deny.",
      kind: { type: "choice", choices: ["first-match", "deny-overrides"] },
      default: "first-match",
    },
  ],
};
