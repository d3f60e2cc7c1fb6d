import type { SettingFragment } from "@throughline/core/internal";

/** What configuration says about sending and resets. */
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
    {
      key: "reset.mode",
      description:
        "When a session resets by itself, before the next message: never, after idle minutes, or daily at an hour. The earlier one is archived.",
      kind: { type: "choice", choices: ["never", "idle", "daily"] },
      default: "never",
    },
    {
      key: "reset.idleMinutes",
      description: "Minutes without a message; null: 60 where the mode is idle. With daily, whichever comes first.",
      kind: { type: "integer", min: 1, max: 525_600 },
      default: null,
    },
    {
      key: "reset.atHour",
      description: "The hour of a daily reset, on this computer's clock.",
      kind: { type: "integer", min: 0, max: 23 },
      default: 4,
    },
  ],
};
