import type Anthropic from "@anthropic-ai/sdk";
import type { ChatModel, ChatRequest } from "@throughline/core";
import { isFields, outputFields, toolChoiceFields } from "@throughline/core/internal";
import { fieldsOf } from "./wire-fields.ts";

export interface AnthropicRequestStyle {
  /** Applies to requests without a limit, because the API requires one. Thinking tokens are added to it. */
  readonly defaultMaxOutputTokens: number;
  readonly promptCache: "5m" | "1h" | "off";
}

export function anthropicPrompt(request: ChatRequest): Anthropic.MessageCountTokensParams {
  const { modelId, system, messages, tools = [], toolChoice, output } = request;
  return {
    model: modelId,
    messages: messages as Anthropic.MessageParam[],
    ...(system === null || system === "" ? {} : { system }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, inputSchema }) => ({
            name,
            description,
            input_schema: inputSchema as Anthropic.Tool.InputSchema,
          })),
        }),
    ...(toolChoice === undefined || tools.length === 0 ? {} : toolChoiceFields("anthropic", toolChoice)),
    ...(output === undefined ? {} : outputFields("anthropic", output)),
  };
}

export function anthropicRequest(
  request: ChatRequest,
  style: AnthropicRequestStyle,
): Anthropic.MessageCreateParamsNonStreaming {
  // The API refuses thinking in a call that must use a tool, so this call does without.
  const level = isForced(request) ? "off" : (request.thinkingLevel ?? "off");
  const given = request.maxOutputTokens ?? null;
  const prompt = anthropicPrompt(request) as Pick<
    Anthropic.MessageCreateParamsNonStreaming,
    "model" | "messages" | "output_config"
  >;
  const base = {
    ...prompt,
    ...(style.promptCache === "off"
      ? {}
      : {
          cache_control: { type: "ephemeral" as const, ...(style.promptCache === "1h" ? { ttl: "1h" as const } : {}) },
        }),
  };
  if (level === "off") return { ...base, max_tokens: given ?? style.defaultMaxOutputTokens };
  if (thinksAdaptively(request.modelId)) {
    return {
      ...base,
      max_tokens: given ?? style.defaultMaxOutputTokens + budgetOf(level),
      thinking: { type: "adaptive" },
      output_config: { ...prompt.output_config, effort: effortOf(level) },
    };
  }
  const budget = Math.min(budgetOf(level), (given ?? Number.MAX_SAFE_INTEGER) - smallestAnswer);
  const maxTokens = given ?? style.defaultMaxOutputTokens + budget;
  if (budget < smallestBudget || !opensWithThinking(request.messages)) return { ...base, max_tokens: maxTokens };
  return { ...base, max_tokens: maxTokens, thinking: { type: "enabled", budget_tokens: budget } };
}

/**
 * The API rejects smaller thinking budgets. If the caller limits the output, `smallestAnswer` tokens remain for the
 * answer.
 */
const smallestBudget = 1024;
const smallestAnswer = 1024;

function budgetOf(level: string): number {
  return ({ minimal: 1024, low: 2048, medium: 8192 } as Readonly<Record<string, number>>)[level] ?? 16_384;
}

type Effort = NonNullable<Anthropic.OutputConfig["effort"]>;

function effortOf(level: string): Effort {
  return level === "minimal" ? "low" : (level as Effort);
}

function isForced({ toolChoice }: ChatRequest): boolean {
  return toolChoice === "required" || typeof toolChoice === "object";
}

/** Claude from 4.5 on answers in JSON of a schema. Older models, and schemas that cannot be closed, need a tool. */
export function answersInJson({ modelId, output }: Parameters<NonNullable<ChatModel["acceptsOutput"]>>[0]): boolean {
  return versionOf(modelId) >= 4.05 && outputFields("anthropic", output) !== null;
}

/**
 * Claude from 4.6 on decides by itself how long it thinks. Older models need a budget. An unknown name is assumed to be
 * a new model.
 */
function thinksAdaptively(modelId: string): boolean {
  return versionOf(modelId) >= 4.06;
}

/** Returns 4.05 for Claude 4.5, so that versions compare as numbers. */
function versionOf(modelId: string): number {
  const version = /claude-(?:[a-z]{1,20}-)?(\d{1,9})(?:[.-](\d{1,2})(?!\d))?/.exec(modelId);
  return version === null ? Number.MAX_SAFE_INTEGER : Number(version[1]) + Number(version[2] ?? 0) / 100;
}

/**
 * With a thinking budget, the tool loop that the request continues must begin with thinking. The API otherwise rejects
 * thinking for this call, so the request omits it. Thinking is missing if another model began the loop or the message
 * was edited.
 */
function opensWithThinking(messages: readonly unknown[]): boolean {
  let first: unknown = null;
  for (const message of messages.toReversed()) {
    if (!isFields(message)) continue;
    const blocks = fieldsOf(message["content"]);
    if (message["role"] === "assistant") first = blocks[0]?.["type"] ?? "text";
    else if (blocks.every(({ type }) => type !== "tool_result")) break;
  }
  return first === null || first === "thinking" || first === "redacted_thinking";
}
