import type Anthropic from "@anthropic-ai/sdk";
import type { ChatRequest } from "@throughline/core";
import { isFields } from "@throughline/core/internal";
import { fieldsOf } from "./wire-fields.ts";

/** How requests to the Messages API are written. */
export interface AnthropicRequestStyle {
  /** For requests that name no limit: the API wants one. Thinking comes on top of it. */
  readonly defaultMaxOutputTokens: number;
  readonly promptCache: "5m" | "1h" | "off";
}

/** What counting and asking have in common. */
export function anthropicPrompt(request: ChatRequest): Anthropic.MessageCountTokensParams {
  const { modelId, system, messages, tools = [] } = request;
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
  };
}

/** The whole request. */
export function anthropicRequest(
  request: ChatRequest,
  style: AnthropicRequestStyle,
): Anthropic.MessageCreateParamsNonStreaming {
  const level = request.thinkingLevel ?? "off";
  const given = request.maxOutputTokens ?? null;
  const prompt = anthropicPrompt(request) as Pick<Anthropic.MessageCreateParamsNonStreaming, "model" | "messages">;
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
      output_config: { effort: effortOf(level) },
    };
  }
  const budget = Math.min(budgetOf(level), (given ?? Number.MAX_SAFE_INTEGER) - smallestAnswer);
  const maxTokens = given ?? style.defaultMaxOutputTokens + budget;
  if (budget < smallestBudget || !opensWithThinking(request.messages)) return { ...base, max_tokens: maxTokens };
  return { ...base, max_tokens: maxTokens, thinking: { type: "enabled", budget_tokens: budget } };
}

/** The least budget the API takes, and what is left for the answer when a limit was given. */
const smallestBudget = 1024;
const smallestAnswer = 1024;

function budgetOf(level: string): number {
  return ({ minimal: 1024, low: 2048, medium: 8192 } as Readonly<Record<string, number>>)[level] ?? 16_384;
}

type Effort = NonNullable<Anthropic.OutputConfig["effort"]>;

function effortOf(level: string): Effort {
  return level === "minimal" ? "low" : (level as Effort);
}

/** Claude from 4.6 on decides itself how long it thinks; the older ones want a budget. An unknown name is a new one. */
function thinksAdaptively(modelId: string): boolean {
  const version = /claude-(?:[a-z]{1,20}-)?(\d{1,9})(?:[.-](\d{1,2})(?!\d))?/.exec(modelId);
  return version === null || Number(version[1]) + Number(version[2] ?? 0) / 100 >= 4.06;
}

/**
 * With a budget the tool loop that the request goes on from must begin with its thinking. Where it has lost it (another
 * model began it, or it was edited), the API refuses thinking for this call; it is left off then.
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
