import type { SettingFragment } from "@throughline/core/internal";
import { defaultThresholds } from "./flush-settings.ts";

/** Configuration accepts these settings for the memory flush. */
export const memoryFlushSettings: SettingFragment = {
  area: "session.memoryFlush",
  fields: [
    {
      key: "enabled",
      description: "Whether the agent is asked to store what it wants to keep; null: where it can write files.",
      kind: { type: "boolean" },
      default: null,
    },
    {
      key: "showInSystemPrompt",
      description: "Whether the system prompt shows prompts delivered as system, and how full the context is.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "thresholds",
      description: "When it is asked, and how; those that could not fire are moved below the compaction point.",
      kind: {
        type: "list",
        minItems: 1,
        maxItems: 50,
        of: {
          type: "object",
          fields: [
            {
              key: "percent",
              description: "Of the window.",
              kind: { type: "number", above: 0, below: 100 },
              default: null,
              isRequired: true,
            },
            {
              key: "prompt",
              description: "The text; {percent} becomes the current figure, YYYY-MM-DD the local date.",
              kind: { type: "text", minLength: 1 },
              default: null,
              isRequired: true,
            },
            {
              key: "injectAs",
              description: "In the system prompt, as a message of the user, or as a marked message.",
              kind: { type: "choice", choices: ["system", "user", "marked"] },
              default: "marked",
            },
          ],
        },
      },
      default: defaultThresholds.map(({ percent, prompt, injectAs }) => ({ percent, prompt, injectAs })),
    },
    {
      key: "timeZone",
      description: "For the date in the prompts, an IANA name as Europe/Berlin; null: the system's.",
      kind: { type: "text", minLength: 1 },
      default: null,
    },
    {
      key: "memoryFolder",
      description: "Where the agent keeps what it stores, below the workspace.",
      kind: { type: "text", minLength: 1 },
      default: "memory",
    },
    {
      key: "writeTools",
      description: "Names of the tools that write files; null: write, edit and what other agents call them.",
      kind: { type: "list", of: { type: "text", minLength: 1 }, minItems: 1, maxItems: 50 },
      default: null,
    },
  ],
};
