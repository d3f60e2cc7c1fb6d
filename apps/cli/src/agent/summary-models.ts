import type { HelperModel, SessionSettings } from "@throughline/config";
import { chatCheckpointWriter, summarizerCheckpointWriter } from "@throughline/checkpoint";
import type { CheckpointWriter } from "@throughline/checkpoint";
import type { ChatModel, Summarizer } from "@throughline/core";
import { modelFromSettings, modelProviders } from "@throughline/models";
import { createChatSummarizer, createSummarizerChain } from "@throughline/summarizer-providers";
import type { ChainedSummarizer, SummarizerBreakers } from "@throughline/summarizer-providers";
import { createExtractiveSummarizer } from "@throughline/summarizer-providers/extractive";
import type { ChosenModel } from "../chat/choose-model.ts";

export interface SummaryModelsOptions {
  readonly settings: SessionSettings;
  readonly chosen: ChosenModel;
  readonly breakers: SummarizerBreakers;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Told of each summariser that gave none, before the next is asked. */
  readonly onFailed: (name: string, cause: unknown) => void;
}

/** Who writes summaries and checkpoints of a conversation. */
export interface SummaryModels {
  readonly summarizers: readonly Summarizer[];
  readonly extractive: Summarizer;
  readonly writers: readonly CheckpointWriter[];
  /** By name, in the order they are asked. */
  readonly names: readonly string[];
}

/**
 * The models that are named, in their order, then the one that answers. The offline rules write no summaries: with them
 * checkpoints are taken from the conversation by its form, and compactions as well.
 */
export function summaryModels({ settings, chosen, ...options }: SummaryModelsOptions): SummaryModels {
  const { breakers, environment, onFailed } = options;
  const extractive = createExtractiveSummarizer();
  const chained: ChainedSummarizer[] = settings.summaryModels.map((helper) => {
    const { contextTokens, deadlineMs, modelId } = helper;
    return {
      name: nameOf(helper),
      summarizer: createChatSummarizer({
        chat: chatOf(helper, environment),
        modelId,
        name: nameOf(helper),
        ...(contextTokens === null ? {} : { windowTokens: contextTokens }),
        ...(deadlineMs === null ? {} : { deadlineMs }),
      }),
    };
  });
  const { chat, modelId, windowTokens } = chosen.model;
  const asksMain = settings.asksMainModel && !chosen.isOffline && !chained.some(({ name }) => name === chosen.name);
  if (asksMain) {
    const window = windowTokens === undefined ? {} : { windowTokens };
    chained.push({
      name: chosen.name,
      summarizer: createChatSummarizer({ chat, modelId, name: chosen.name, ...window }),
    });
  }
  const failed = ({ name, cause }: { readonly name: string; readonly cause: unknown }): void => onFailed(name, cause);
  return {
    summarizers:
      chained.length === 0 ? [] : [createSummarizerChain({ summarizers: chained, breakers, onFailed: failed })],
    extractive,
    writers: checkpointWriters(settings, chosen, environment, extractive),
    names: chained.map(({ name }) => name),
  };
}

function checkpointWriters(
  { checkpointModel, checkpointFallsBack }: SessionSettings,
  { isOffline, model }: ChosenModel,
  environment: SummaryModelsOptions["environment"],
  extractive: Summarizer,
): readonly CheckpointWriter[] {
  const first =
    checkpointModel === null
      ? []
      : [chatCheckpointWriter(chatOf(checkpointModel, environment), checkpointModel.modelId)];
  if (checkpointModel !== null && !checkpointFallsBack) return first;
  const main = isOffline
    ? summarizerCheckpointWriter(extractive, "extractive")
    : chatCheckpointWriter(model.chat, model.modelId);
  return [...first, main];
}

function nameOf({ provider, modelId }: HelperModel): string {
  return `${provider}/${modelId}`;
}

/** With the key of its provider from the environment: keys of the settings belong to the model that answers. */
function chatOf(
  { provider, baseUrl, contextTokens }: HelperModel,
  environment: SummaryModelsOptions["environment"],
): ChatModel {
  const known = modelProviders.find(({ name }) => name === provider);
  const textOf = (variable: string | null | undefined): string | null => {
    const text = variable == null ? undefined : environment[variable];
    return text === undefined || text === "" ? null : text;
  };
  return modelFromSettings({
    provider,
    apiKey: textOf(known?.keyVariable),
    baseUrl: baseUrl ?? textOf(known?.baseUrlVariable),
    ...(contextTokens === null ? {} : { contextTokens }),
  });
}
