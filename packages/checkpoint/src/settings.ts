import type { SettingFragment } from "@throughline/core/internal";

export const checkpointSettings: SettingFragment = {
  area: "session.checkpoint",
  fields: [
    {
      key: "enabled",
      description: "False: no model is ever asked for one.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "model",
      description:
        "Asked first: provider/name, or ollama for the one of session.compaction.ollama; null: ollama where that is configured, else nobody.",
      kind: { type: "text", minLength: 1 },
      default: null,
    },
    {
      key: "fallbackToMain",
      description: "Whether the model that answers is asked when the one above gave none.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "tokenThresholdPercents",
      description: "One is made at each of these shares of the window.",
      kind: { type: "list", of: { type: "number", above: 0, below: 100 }, minItems: 0, maxItems: 50 },
      default: [25, 50, 75],
    },
    {
      key: "turnThreshold",
      description: "A checkpoint is created after this number of messages of the user.",
      kind: { type: "integer", min: 1, max: 100_000 },
      default: 10,
    },
    {
      key: "minTokensForGen",
      description: "No checkpoint is created below this number of tokens.",
      kind: { type: "integer", min: 0, max: 10_000_000 },
      default: 5000,
    },
    {
      key: "deadlineMs",
      description: "How long all models asked for one checkpoint may take together.",
      kind: { type: "integer", min: 1, max: 86_400_000 },
      default: 600_000,
    },
  ],
};
