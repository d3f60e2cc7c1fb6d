import type { Context } from "./build-context.ts";
import { providerMappings, type TargetMessages, type TargetName } from "./provider-mappings.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { validateAnthropic } from "./validate-anthropic.ts";
import { validateBedrock } from "./validate-bedrock.ts";
import { validateGemini } from "./validate-gemini.ts";
import { validateMistral } from "./validate-mistral.ts";
import { validateOllama } from "./validate-ollama.ts";
import { validateOpenAiChat } from "./validate-openai-chat.ts";
import { validateOpenAiResponses } from "./validate-openai-responses.ts";
import type { Violation } from "./violation.ts";

/** A provider's way to take a history, with nothing in its types that only this provider has. */
export interface HistoryTarget<Message = unknown> {
  /** The name of the wire shape, such as `anthropic`. */
  readonly name: TargetName;
  /** The rules and shapes that the target is made of. */
  readonly mapping: ProviderMapping<Message>;
  /** The messages, items or contents. */
  readonly render: (context: Context, options?: RenderOptions) => Rendering<Message>;
  /** What the provider would refuse; `model` is the one that gets the messages. */
  readonly validate: (messages: readonly unknown[], model?: string | null) => readonly Violation[];
}

function target<Name extends TargetName>(
  name: Name,
  validate: HistoryTarget["validate"],
): readonly [Name, HistoryTarget<TargetMessages[Name]>] {
  const mapping = providerMappings[name]({});
  return [name, { name, mapping, render: (context, options = {}) => renderWith(context, mapping, options), validate }];
}

/** All providers, by the name the command line knows them by. */
export const historyTargets: ReadonlyMap<TargetName, HistoryTarget> = new Map<TargetName, HistoryTarget>([
  target("anthropic", (messages, model) => validateAnthropic(messages, { model: model ?? "" })),
  target("openai", (messages) => validateOpenAiChat(messages)),
  target("openai-responses", (items) => validateOpenAiResponses(items)),
  target("ollama", (messages) => validateOllama(messages)),
  target("gemini", (contents, model) => validateGemini(contents, { model: model ?? "" })),
  target("mistral", (messages) => validateMistral(messages)),
  target("bedrock", (messages) => validateBedrock(messages)),
]);
