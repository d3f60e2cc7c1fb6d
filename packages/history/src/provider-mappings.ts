import { anthropicMapping, type AnthropicMessage } from "./render-anthropic.ts";
import { bedrockMapping, type BedrockMessage } from "./render-bedrock.ts";
import { geminiMapping, type GeminiContent } from "./render-gemini.ts";
import { mistralMapping, type MistralMessage } from "./render-mistral.ts";
import { ollamaMapping, type OllamaMessage } from "./render-ollama.ts";
import { openAiChatMapping, type OpenAiChatMessage, type OpenAiChatOptions } from "./render-openai-chat.ts";
import { openAiResponsesMapping, type OpenAiResponsesItem } from "./render-openai-responses.ts";
import type { ProviderMapping } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";

/** The name of a way to take a history, and what its messages are. */
export interface TargetMessages {
  /** Anthropic's Messages API. */
  readonly anthropic: AnthropicMessage;
  /** OpenAI's Chat Completions API, and servers that copy it. */
  readonly openai: OpenAiChatMessage;
  /** OpenAI's Responses API. */
  readonly "openai-responses": OpenAiResponsesItem;
  /** Ollama's chat API. */
  readonly ollama: OllamaMessage;
  /** Gemini's generateContent. */
  readonly gemini: GeminiContent;
  /** Mistral's chat API. */
  readonly mistral: MistralMessage;
  /** Amazon Bedrock's Converse. */
  readonly bedrock: BedrockMessage;
}

/** A name that `createHistory` takes: a provider, or a wire format of one. */
export type TargetName = keyof TargetMessages;

/** What a rendering for the target takes. */
export type TargetOptions<Name extends TargetName> = Name extends "openai" ? OpenAiChatOptions : RenderOptions;

type Mappings = {
  readonly [Name in TargetName]: (options: TargetOptions<Name>) => ProviderMapping<TargetMessages[Name]>;
};

/** The mapping of each target for a set of options. */
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
