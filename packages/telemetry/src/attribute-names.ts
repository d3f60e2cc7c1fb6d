/**
 * Names the version of the OpenTelemetry conventions that this table follows. All `gen_ai` names have the status
 * "Development" there, so they may change, and this table with them.
 */
export const schemaUrl = "https://opentelemetry.io/schemas/1.45.0";

/** Holds all attribute names in one place, because a new version of the conventions may rename them. */
export const names = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  conversation: "gen_ai.conversation.id",
  agent: "gen_ai.agent.id",
  requestModel: "gen_ai.request.model",
  maxTokens: "gen_ai.request.max_tokens",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
  toolName: "gen_ai.tool.name",
  toolCallId: "gen_ai.tool.call.id",
  toolType: "gen_ai.tool.type",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  error: "error.type",
} as const;

/** With a logger, the content of a call is written as this event instead of as attributes. */
export const contentEvent = "gen_ai.client.inference.operation.details";

const providers: ReadonlyMap<string, string> = new Map([
  ["google", "gcp.gemini"],
  ["gemini", "gcp.gemini"],
  ["bedrock", "aws.bedrock"],
  ["mistral", "mistral_ai"],
  ["azure", "azure.ai.openai"],
]);

/** The conventions use names of their own for some providers. */
export function providerName(provider: string): string {
  return providers.get(provider) ?? provider;
}

const finishReasons: ReadonlyMap<unknown, string> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["toolUse", "tool_call"],
  ["error", "error"],
  ["aborted", "error"],
]);

/** Returns null when the record states no stop reason. */
export function finishReason(stopReason: unknown): string | null {
  return finishReasons.get(stopReason) ?? (typeof stopReason === "string" ? stopReason : null);
}
