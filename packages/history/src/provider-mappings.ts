import { anthropicMapping, type AnthropicMessage } from "./render-anthropic.ts";
import { bedrockMapping, type BedrockMessage } from "./render-bedrock.ts";
import { geminiMapping, type GeminiContent } from "./render-gemini.ts";
import { mistralMapping, type MistralMessage } from "./render-mistral.ts";
import { ollamaMapping, type OllamaMessage } from "./render-ollama.ts";
import { openAiChatMapping, type OpenAiChatMessage, type OpenAiChatOptions } from "./render-openai-chat.ts";
import { openAiResponsesMapping, type OpenAiResponsesItem } from "./render-openai-responses.ts";
import type { ProviderMapping } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";

/** Maps the name of a target to the type of its messages. */
export interface TargetMessages {
  /** Selects Anthropic's Messages API. */
  readonly anthropic: AnthropicMessage;
  /** Selects OpenAI's Chat Completions API, and servers that copy it. */
  readonly openai: OpenAiChatMessage;
  /** Selects OpenAI's Responses API. */
  readonly "openai-responses": OpenAiResponsesItem;
  /** Selects Ollama's chat API. */
  readonly ollama: OllamaMessage;
  /** Selects Gemini's generateContent. */
  readonly gemini: GeminiContent;
  /** Selects Mistral's chat API. */
  readonly mistral: MistralMessage;
  /** Selects Amazon Bedrock's Converse API. */
  readonly bedrock: BedrockMessage;
}

/** Names a target of `createHistory`: a provider, or one of its wire formats. */
export type TargetName = keyof TargetMessages;

/** Selects the options that a rendering for the target accepts. */
export type TargetOptions<Name extends TargetName> = Name extends "openai" ? OpenAiChatOptions : RenderOptions;

type Mappings = {
  readonly [Name in TargetName]: (options: TargetOptions<Name>) => ProviderMapping<TargetMessages[Name]>;
};

export const providerMappings: Mappings = {
  anthropic: () => anthropicMapping,
  openai: (options) => openAiChatMapping(options),
  "openai-responses": () => openAiResponsesMapping,
  ollama: () => ollamaMapping,
  gemini: () => geminiMapping,
  mistral: () => mistralMapping,
  bedrock: () => bedrockMapping,
};

export const targetNames: readonly TargetName[] = Object.keys(providerMappings) as TargetName[];
