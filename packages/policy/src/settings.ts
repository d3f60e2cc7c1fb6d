import type { SettingFragment, SettingKind } from "@throughline/core/internal";

const minutes: SettingKind = { type: "integer", min: 1, max: 525_600 };
const hour: SettingKind = { type: "integer", min: 0, max: 23 };
const mode: SettingKind = { type: "choice", choices: ["never", "idle", "daily"] };

const rule: SettingKind = {
  type: "object",
  fields: [
    { key: "mode", description: "When such a session resets.", kind: mode, default: null },
    { key: "idleMinutes", description: "Minutes without a message.", kind: minutes, default: null },
    { key: "atHour", description: "The hour of a daily reset.", kind: hour, default: null },
  ],
};

const types = ["direct", "dm", "group", "channel", "thread"];

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
      kind: mode,
      default: "never",
    },
    {
      key: "reset.idleMinutes",
      description: "Minutes without a message; null: 60 where the mode is idle. With daily, whichever comes first.",
      kind: minutes,
      default: null,
    },
    {
      key: "reset.atHour",
      description: "The hour of a daily reset, on this computer's clock.",
      kind: hour,
      default: 4,
    },
    {
      key: "resetByType",
      description:
        "Reset rules {mode, idleMinutes, atHour} by type of conversation; null: session.reset holds, as for what a rule leaves out. dm is direct.",
      kind: {
        type: "object",
        fields: types.map((key) => ({ key, description: "The rule of this type.", kind: rule, default: null })),
      },
      default: null,
    },
    {
      key: "resetByChannel",
      description: "The same by channel, such as telegram; null: none. A channel's rule comes before one of the type.",
      kind: { type: "map", of: rule, maxEntries: 1000 },
      default: null,
    },
  ],
};
