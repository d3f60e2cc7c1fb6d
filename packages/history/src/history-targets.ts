import { runSteps, type Steps } from "@throughline/core/internal";
import type { Context } from "./build-context.ts";
import { providerMappings, type TargetMessages, type TargetName } from "./provider-mappings.ts";
import { renderWith, type ProviderMapping, type Rendering } from "./replay-history.ts";
import type { RenderOptions } from "./render-options.ts";
import { anthropicSteps } from "./validate-anthropic.ts";
import { bedrockSteps } from "./validate-bedrock.ts";
import { geminiSteps } from "./validate-gemini.ts";
import { mistralSteps } from "./validate-mistral.ts";
import { ollamaSteps } from "./validate-ollama.ts";
import { openAiChatSteps } from "./validate-openai-chat.ts";
import { openAiResponsesSteps } from "./validate-openai-responses.ts";
import type { Violation } from "./violation.ts";

/** Describes how one provider receives a history, independent of the provider's own types. */
export interface HistoryTarget<Message = unknown> {
  /** Names the wire format, such as `anthropic`. */
  readonly name: TargetName;
  /** Holds the rules and the mapping of the target. */
  readonly mapping: ProviderMapping<Message>;
  /** Renders a context as messages, items or contents of the provider. */
  readonly render: (context: Context, options?: RenderOptions) => Rendering<Message>;
  /**
   * Returns the violations for which the provider would reject the messages. `model` names the model that receives
   * them.
   */
  readonly validate: (messages: readonly unknown[], model?: string | null) => readonly Violation[];
}

type ValidationSteps = (messages: readonly unknown[], model: string | null) => Steps<readonly Violation[]>;

export const validationSteps: Readonly<Record<TargetName, ValidationSteps>> = {
  anthropic: (messages, model) => anthropicSteps(messages, { model: model ?? "" }),
  openai: openAiChatSteps,
  "openai-responses": (items) => openAiResponsesSteps(items),
  ollama: ollamaSteps,
  gemini: (contents, model) => geminiSteps(contents, { model: model ?? "" }),
  mistral: mistralSteps,
  bedrock: bedrockSteps,
};

function target<Name extends TargetName>(name: Name): readonly [Name, HistoryTarget<TargetMessages[Name]>] {
  const mapping = providerMappings[name]({});
  const render: HistoryTarget<TargetMessages[Name]>["render"] = (context, options = {}) =>
    renderWith(context, mapping, options);
  const validate: HistoryTarget["validate"] = (messages, model = null) =>
    runSteps(validationSteps[name](messages, model));
  return [name, { name, mapping, render, validate }];
}

/** Maps the names that the command line uses to the targets of all providers. */
export const historyTargets: ReadonlyMap<TargetName, HistoryTarget> = new Map<TargetName, HistoryTarget>([
  target("anthropic"),
  target("openai"),
  target("openai-responses"),
  target("ollama"),
  target("gemini"),
  target("mistral"),
  target("bedrock"),
]);
