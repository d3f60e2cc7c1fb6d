import type { HelperModel, SessionSettings } from "@throughline/config/internal";
import { chatCheckpointWriter, summarizerCheckpointWriter } from "@throughline/checkpoint";
import type { CheckpointWriter } from "@throughline/checkpoint";
import { hasErrorCode } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import type { Summarizer } from "@throughline/core";
import { createModel } from "@throughline/models";
import { modelProviders } from "@throughline/models/internal";
import {
  createChatSummarizer,
  createExtractiveSummarizer,
  createSummarizerChain,
} from "@throughline/summarizer-providers";
import type { ChainedSummarizer, SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import type { ChosenModel } from "./choose-model.ts";

export interface SummaryModelsOptions {
  readonly settings: SessionSettings;
  readonly chosen: ChosenModel;
  readonly breakers: SummarizerBreakers;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onFailed: (name: string, cause: unknown) => void;
}

export interface SummaryModels {
  readonly summarizers: readonly Summarizer[];
  readonly extractive: Summarizer;
  readonly writers: readonly CheckpointWriter[];
  /** Holds one sentence for people for each model that is left out. */
  readonly notes: readonly string[];
}

/** `variable` names the environment variable that would hold the missing key. */
type Helper =
  | { readonly named: HelperModel; readonly model: SessionModel }
  | { readonly named: HelperModel; readonly model: null; readonly variable: string };

/**
 * Orders the writers: the configured models, then the main model. The offline rules write no summaries, so checkpoints
 * and compactions are then extracted by rules. A model without a provider key is left out with a note, because a
 * missing helper must not end a conversation.
 * @throws {ThroughlineError} INPUT_INVALID for a provider that does not exist
 */
export function summaryModels({ settings, chosen, ...options }: SummaryModelsOptions): SummaryModels {
  const { breakers, environment, onFailed } = options;
  const { summaryStyle: style, summaryToolResults: toolResults, summaryMessageChars: messageChars } = settings;
  const shape = { style, toolResults, ...(messageChars === null ? {} : { messageChars }) };
  const extractive = createExtractiveSummarizer();
  const helpers = settings.summaryModels.map((named) => helperOf(named, environment));
  const chained: ChainedSummarizer[] = helpers.flatMap(({ named, model }) => {
    if (model === null) return [];
    const { deadlineMs } = named;
    const name = nameOf(named);
    const deadline = deadlineMs === null ? {} : { deadlineMs };
    const summarizer = createChatSummarizer({ model, name, ...shape, ...deadline });
    return [{ name, summarizer, hasBreaker: name !== chosen.name }];
  });
  const asksMain = settings.asksMainModel && !chosen.isOffline && !chained.some(({ name }) => name === chosen.name);
  if (asksMain) {
    chained.push({
      name: chosen.name,
      summarizer: createChatSummarizer({ model: chosen.model, name: chosen.name, ...shape }),
    });
  }
  const failed = ({ name, cause }: { readonly name: string; readonly cause: unknown }): void => onFailed(name, cause);
  const writer = settings.checkpointModel === null ? null : helperOf(settings.checkpointModel, environment);
  const writers = checkpointWriters(writer, helpers, { settings, chosen, breakers }, extractive);
  return {
    summarizers:
      chained.length === 0 ? [] : [createSummarizerChain({ summarizers: chained, breakers, onFailed: failed })],
    extractive,
    writers,
    notes: [
      ...missingNotes(helpers, "summaries", chained[0]?.name ?? "rules, without a model"),
      ...(writer === null ? [] : missingNotes([writer], "checkpoints", writers[0]?.name ?? null)),
    ],
  };
}

/**
 * Orders the writers: the checkpoint model, then the main model if allowed. Without a checkpoint model, or if it is the
 * first summary model, the summary chain writes checkpoints too. If no model is left, checkpoints are extracted by
 * rules, as summaries are.
 */
function checkpointWriters(
  head: Helper | null,
  helpers: readonly Helper[],
  { settings, chosen, breakers }: Pick<SummaryModelsOptions, "settings" | "chosen" | "breakers">,
  extractive: Summarizer,
): readonly CheckpointWriter[] {
  const [next] = helpers;
  const isOfChain = head === null || (next !== undefined && nameOf(next.named) === nameOf(head.named));
  if (!isOfChain && !settings.checkpointFallsBack) return writersOf([head]);
  const named = writersOf(isOfChain ? helpers : [head]);
  const asksMainModel = isOfChain ? settings.asksMainModel : settings.checkpointFallsBack;
  const main = chosen.isOffline || !asksMainModel ? [] : [chatCheckpointWriter(chosen.model)];
  const writers = [...named, ...main]
    .filter(({ name }, index, all) => all.findIndex((other) => other.name === name) === index)
    // A breaker would not help the last writer, because no other follows. The main model must stay available for turns,
    // so it has none either.
    .map((writer, index, { length }) =>
      index === length - 1 || writer.name === chosen.name ? writer : guarded(writer, breakers),
    );
  const byRules = summarizerCheckpointWriter(extractive, "extractive");
  return chosen.isOffline || writers.length === 0 ? [...writers, byRules] : writers;
}

function writersOf(helpers: readonly Helper[]): readonly CheckpointWriter[] {
  return helpers.flatMap(({ model }) => (model === null ? [] : [chatCheckpointWriter(model)]));
}

/** Shares the breaker of the model's summaries, so that a checkpoint does not wait for a model that fails there. */
function guarded(writer: CheckpointWriter, breakers: SummarizerBreakers): CheckpointWriter {
  return {
    name: writer.name,
    async write(request) {
      const summarizer: Summarizer = {
        async summarize() {
          const reply = await writer.write(request);
          const { text: summary, usage } = typeof reply === "string" ? { text: reply, usage: null } : reply;
          return { source: writer.name, usage, summary };
        },
      };
      const { summary: text, usage } = await breakers.guard(writer.name, summarizer).summarize(request);
      return { text, usage };
    },
  };
}

/** Explains what replaces the models without a key; a null `instead` means that no text of this kind is written. */
function missingNotes(helpers: readonly Helper[], what: string, instead: string | null): readonly string[] {
  return helpers.flatMap((helper) => {
    if (helper.model !== null) return [];
    const by = instead === null ? `no ${what} are written` : `${what} are written by ${instead}`;
    return [`${helper.variable} is not set, so ${nameOf(helper.named)} is left out: ${by}.`];
  });
}

function helperOf(named: HelperModel, environment: SummaryModelsOptions["environment"]): Helper {
  try {
    return { named, model: modelOf(named, environment) };
  } catch (error) {
    if (!hasErrorCode(error, "MODEL_KEY_MISSING")) throw error;
    return { named, model: null, variable: keyVariableOf(named.provider) ?? `The key of ${named.provider}` };
  }
}

function keyVariableOf(provider: string): string | null {
  return modelProviders.find(({ name }) => name === provider)?.keyVariable ?? null;
}

function nameOf({ provider, modelId }: HelperModel): string {
  return `${provider}/${modelId}`;
}

/** Uses the provider's key from the environment, because the configured key belongs to the main model. */
function modelOf(
  { provider, modelId, baseUrl, contextTokens }: HelperModel,
  environment: SummaryModelsOptions["environment"],
): SessionModel {
  const known = modelProviders.find(({ name }) => name === provider);
  const textOf = (variable: string | null | undefined): string | null => {
    const text = variable == null ? undefined : environment[variable];
    return text === undefined || text === "" ? null : text;
  };
  const window = contextTokens === null ? {} : { windowTokens: contextTokens };
  const model = createModel({
    provider,
    modelId,
    apiKey: textOf(known?.keyVariable),
    baseUrl: baseUrl ?? textOf(known?.baseUrlVariable),
    ...window,
  });
  // The configured window has priority, so the server is not asked for it.
  return { ...model, ...window };
}
