import type { SettingFragment } from "@throughline/core/internal";
import { localSummaryModel } from "./local-summary-model.ts";

export const summarizerSettings: SettingFragment = {
  area: "session.compaction",
  fields: [
    {
      key: "summaryModels",
      description:
        "Asked for summaries in this order: provider/name, or ollama for the block below; null: ollama where the block is configured, else nobody. The conversation goes to no other provider.",
      kind: { type: "list", of: { type: "text", minLength: 1 }, minItems: 0, maxItems: 10 },
      default: null,
    },
    {
      key: "summaryStyle",
      description: "How a model is asked for a summary: under headings, or in prose with a short instruction.",
      kind: { type: "choice", choices: ["sections", "concise"] },
      default: "sections",
    },
    {
      key: "summaryToolResults",
      description:
        "What a model that writes a summary reads of tool results that are no failures: their length alone, or up to toolResultChars of their text.",
      kind: { type: "choice", choices: ["marker", "keep"] },
      default: "marker",
    },
    {
      key: "summaryMessageChars",
      description:
        "Longer messages are cut in the middle before a model reads them for a summary, in characters; null: a quarter of its window, from 2000 to 20000.",
      kind: { type: "integer", min: 100, max: 10_000_000 },
      default: null,
    },
    {
      key: "fallbackToMain",
      description: "Whether the model that answers is asked after those; the summarizer that needs no model is last.",
      kind: { type: "boolean" },
      default: true,
    },
    {
      key: "ollamaFailureThreshold",
      description: "After this number of failures in a row, a summary model of any provider is skipped for a while.",
      kind: { type: "integer", min: 1, max: 1000 },
      default: 3,
    },
    {
      key: "ollamaResetMinutes",
      description: "How long it is left out before one summary tries it again.",
      kind: { type: "integer", min: 1, max: 10_080 },
      default: 30,
    },
    {
      key: "ollama.url",
      description: "Address of the Ollama server that writes summaries.",
      kind: { type: "text", minLength: 1 },
      default: localSummaryModel.baseUrl,
    },
    {
      key: "ollama.model",
      description: "Its model.",
      kind: { type: "text", minLength: 1 },
      default: localSummaryModel.modelId,
    },
    {
      key: "ollama.timeoutSeconds",
      description: "How long one summary may take there.",
      kind: { type: "integer", min: 1, max: 86_400 },
      default: localSummaryModel.deadlineMs / 1000,
    },
    {
      key: "ollama.contextTokens",
      description: "The window asked for with every request, which conversations are cut to.",
      kind: { type: "integer", min: 1024, max: 10_000_000 },
      default: localSummaryModel.windowTokens,
    },
  ],
};
