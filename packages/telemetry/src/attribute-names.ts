/**
 * The version of OpenTelemetry's conventions that the names are of. All names of `gen_ai` have the status "Development" there:
 * they may change, and this table with them.
 */
export const schemaUrl = "https://opentelemetry.io/schemas/1.45.0";

/** The names that spans of sessions use, in one place. */
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

/** The event that has the content of a call where a logger is given. */
export const contentEvent = "gen_ai.client.inference.operation.details";

const providers: ReadonlyMap<string, string> = new Map([
  ["google", "gcp.gemini"],
  ["gemini", "gcp.gemini"],
  ["bedrock", "aws.bedrock"],
  ["mistral", "mistral_ai"],
  ["azure", "azure.ai.openai"],
]);

/** A provider as the conventions call it. */
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

/** Why a reply ended, as the conventions call it; null when the record does not say. */
export function finishReason(stopReason: unknown): string | null {
  return finishReasons.get(stopReason) ?? (typeof stopReason === "string" ? stopReason : null);
}
