import type { Context } from "./build-context.ts";
import { anthropicMapping } from "./render-anthropic.ts";
import { bedrockMapping } from "./render-bedrock.ts";
import { geminiMapping } from "./render-gemini.ts";
import { mistralMapping } from "./render-mistral.ts";
import { ollamaMapping } from "./render-ollama.ts";
import { openAiChatMapping } from "./render-openai-chat.ts";
import { openAiResponsesMapping } from "./render-openai-responses.ts";
import { renderWith, type ProviderMapping, type Rendering, type RenderOptions } from "./replay-history.ts";
import { validateAnthropic } from "./validate-anthropic.ts";
import { validateBedrock } from "./validate-bedrock.ts";
import { validateGemini } from "./validate-gemini.ts";
import { validateMistral } from "./validate-mistral.ts";
import { validateOllama } from "./validate-ollama.ts";
import { validateOpenAiChat } from "./validate-openai-chat.ts";
import { validateOpenAiResponses } from "./validate-openai-responses.ts";
import type { Violation } from "./violation.ts";

export type TargetName = "anthropic" | "openai" | "openai-responses" | "ollama" | "gemini" | "mistral" | "bedrock";

/** A provider's way to take a history, with nothing in its types that only this provider has. */
export interface HistoryTarget {
  readonly name: TargetName;
  readonly mapping: ProviderMapping<unknown>;
  /** The messages, items or contents. */
  readonly render: (context: Context, options?: RenderOptions) => Rendering<unknown>;
  /** What the provider would refuse; `model` is the one that gets the messages. */
  readonly validate: (messages: readonly unknown[], model?: string | null) => readonly Violation[];
}

function target(
  name: TargetName,
  mapping: ProviderMapping<unknown>,
  validate: HistoryTarget["validate"],
): readonly [TargetName, HistoryTarget] {
  return [name, { name, mapping, render: (context, options = {}) => renderWith(context, mapping, options), validate }];
}

/** All providers, by the name the command line knows them by. */
export const historyTargets: ReadonlyMap<TargetName, HistoryTarget> = new Map([
  target("anthropic", anthropicMapping, (messages, model) => validateAnthropic(messages, { model: model ?? "" })),
  target("openai", openAiChatMapping(), (messages) => validateOpenAiChat(messages)),
  target("openai-responses", openAiResponsesMapping, (items) => validateOpenAiResponses(items)),
  target("ollama", ollamaMapping, (messages) => validateOllama(messages)),
  target("gemini", geminiMapping, (contents, model) => validateGemini(contents, { model: model ?? "" })),
  target("mistral", mistralMapping, (messages) => validateMistral(messages)),
  target("bedrock", bedrockMapping, (messages) => validateBedrock(messages)),
]);
