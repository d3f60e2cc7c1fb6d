import type { SettingField, SettingFragment } from "@throughline/core/internal";

const embedderFields: readonly SettingField[] = [
  {
    key: "provider",
    description: "What gives the vectors: a server with OpenAI's protocol, an Ollama server, or a model in a folder.",
    kind: { type: "choice", choices: ["openai-compatible", "ollama", "local"] },
    default: null,
    isRequired: true,
  },
  {
    key: "model",
    description: "The name of the model; for local the folder of the model, as an absolute path.",
    kind: { type: "text", minLength: 1 },
    default: null,
    isRequired: true,
  },
  {
    key: "url",
    description: "The address of the server, for openai-compatible up to and with /v1; null: Ollama on this machine.",
    kind: { type: "text", minLength: 1 },
    default: null,
  },
  {
    key: "dimensions",
    description: "The length of the vectors; null: that of a known model.",
    kind: { type: "integer", min: 1, max: 100_000 },
    default: null,
  },
  {
    key: "keyVariable",
    description: "The environment variable with the key of the server; null: no key is sent.",
    kind: { type: "text", minLength: 1 },
    default: null,
  },
];

export const memorySettings: SettingFragment = {
  area: "memory.search",
  fields: [
    {
      key: "embedder",
      description:
        "Searches past sessions by meaning too, with vectors of this model. The text of sessions is sent to it. null: words only, and nothing is sent.",
      kind: { type: "object", fields: embedderFields },
      default: null,
    },
    {
      key: "embedderBefore",
      description:
        "The embedder that was used before. It answers until the vectors of the new one are complete; null: words alone answer for what has no new vector.",
      kind: { type: "object", fields: embedderFields },
      default: null,
    },
    {
      key: "maxTokensPerDay",
      description:
        "How many tokens of sessions are sent to the embedder on one day in UTC, estimated at three characters a token.",
      kind: { type: "integer", min: 1, max: 1_000_000_000_000 },
      default: 1_000_000,
    },
  ],
};
