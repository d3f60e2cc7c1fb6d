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

type ValidationSteps = (messages: readonly unknown[], model: string | null) => Steps<readonly Violation[]>;

/** What each provider would refuse, a message a step. */
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

/** All providers, by the name the command line knows them by. */
export const historyTargets: ReadonlyMap<TargetName, HistoryTarget> = new Map<TargetName, HistoryTarget>([
  target("anthropic"),
  target("openai"),
  target("openai-responses"),
  target("ollama"),
  target("gemini"),
  target("mistral"),
  target("bedrock"),
]);
