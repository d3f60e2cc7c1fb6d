import type { SettingFragment } from "@throughline/core/internal";

/** Configuration accepts these settings for compaction and for retries of summaries. */
export const compactionSettings: SettingFragment = {
  area: "session.compaction",
  fields: [
    {
      key: "reserveTokens",
      description: "Room kept free for the answer and a flush: compaction is due at window minus reserve.",
      kind: { type: "integer", min: 0, max: 10_000_000 },
      default: 30_000,
    },
    {
      key: "reserveFloorTokens",
      description: "The reserve is never smaller, but where a quarter of the window is.",
      kind: { type: "integer", min: 0, max: 10_000_000 },
      default: 20_000,
    },
    {
      key: "inAdvance",
      description: "Whether a session is compacted before it is full; false: only when a request does not fit.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "background",
      description:
        "Whether a summary is begun beside the turns at 90 % of the compaction point and used once it is there; false: compaction comes at that point exactly.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "maxMessages",
      description: "Compacts a session with an unknown window at this number of messages.",
      kind: { type: "integer", min: 5, max: 1_000_000 },
      default: 500,
    },
    {
      key: "keepPercent",
      description: "The share of the messages that stays, in percent.",
      kind: { type: "integer", min: 0, max: 90 },
      default: 10,
    },
    {
      key: "emergencyKeepPercent",
      description: "The same when no model wrote the summary.",
      kind: { type: "integer", min: 0, max: 90 },
      default: 20,
    },
    {
      key: "minMessages",
      description: "The fewest messages that stay, as far as their tokens allow.",
      kind: { type: "integer", min: 0, max: 10_000 },
      default: 20,
    },
    {
      key: "keepRecentTokens",
      description: "The fewest tokens that stay, at most a quarter of the window.",
      kind: { type: "integer", min: 0, max: 10_000_000 },
      default: 20_000,
    },
    {
      key: "mostKeptPercent",
      description:
        "The largest share of the window that the kept part takes, in percent, whatever the other settings are.",
      kind: { type: "integer", min: 5, max: 90 },
      default: 25,
    },
    {
      key: "maxSummaryTokens",
      description: "The longest summary, at most a tenth of the window.",
      kind: { type: "integer", min: 100, max: 1_000_000 },
      default: 2000,
    },
    {
      key: "maxDetailTokens",
      description: "The longest list of details beside the summary, at most a twentieth of the window.",
      kind: { type: "integer", min: 0, max: 1_000_000 },
      default: 350,
    },
    {
      key: "toolResultChars",
      description: "Longer tool results are cut in the middle before a model reads them for a summary; in characters.",
      kind: { type: "integer", min: 100, max: 1_000_000 },
      default: 2000,
    },
    {
      key: "preferCheckpoint",
      description: "Whether a checkpoint that covers half of the context is taken without asking a model.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "deadlineMs",
      description: "How long all summarizers of one compaction may take together.",
      kind: { type: "integer", min: 1, max: 86_400_000 },
      default: 180_000,
    },
    {
      key: "retryIntervalSeconds",
      description: "How often summaries that no model wrote are made again; 0 switches it off.",
      kind: { type: "integer", min: 0, max: 86_400 },
      default: 60,
    },
    {
      key: "retryMaxAttempts",
      description: "After this number of attempts a summary stays as it is.",
      kind: { type: "integer", min: 1, max: 1000 },
      default: 8,
    },
    {
      key: "retryFirstDelayMs",
      description: "Wait after the first attempt that failed; each further one doubles it.",
      kind: { type: "integer", min: 1, max: 86_400_000 },
      default: 60_000,
    },
    {
      key: "retryMaxDelayMs",
      description: "The longest wait between two attempts.",
      kind: { type: "integer", min: 1, max: 604_800_000 },
      default: 3_600_000,
    },
  ],
};
