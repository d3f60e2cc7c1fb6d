import { isFields, readUsage } from "@throughline/core/internal";

/** Holds the parts of a reply that the guard judges. */
export interface ReplyFacts {
  /** Holds the stop reason in the provider's own word; null when the reply does not state one. */
  readonly stopReason: string | null;
  /** Counts the tokens of the prompt; null when the reply does not state the usage. */
  readonly promptTokens: number | null;
  /** Counts the tokens that the model wrote; null when the reply does not state the usage. */
  readonly outputTokens: number | null;
  /** Is true when the reply has no text, call or thinking. */
  readonly isEmpty: boolean;
  /** Holds an error that arrived inside a reply of status 200. */
  readonly error: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads a reply of the Anthropic, OpenAI or Ollama SDK, or of a `ChatModel`. */
export function readReply(reply: unknown): ReplyFacts {
  if (!isFields(reply))
    return { stopReason: null, promptTokens: null, outputTokens: null, isEmpty: false, error: null };
  const choice: Fields = Array.isArray(reply["choices"]) && isFields(reply["choices"][0]) ? reply["choices"][0] : {};
  const message = isFields(choice["message"])
    ? choice["message"]
    : isFields(reply["message"])
      ? reply["message"]
      : reply;
  const incomplete = isFields(reply["incomplete_details"]) ? reply["incomplete_details"]["reason"] : undefined;
  const stated = [reply["stop_reason"], choice["finish_reason"], incomplete, reply["done_reason"], reply["stopReason"]];
  const usage = readUsage(isFields(reply["usage"]) ? reply["usage"] : reply);
  return {
    stopReason: stated.find((reason) => typeof reason === "string") ?? null,
    promptTokens: usage?.promptTokens ?? null,
    outputTokens: usage?.output ?? null,
    isEmpty:
      isEmptyContent(message["content"] ?? reply["output"]) && !hasItems(message["tool_calls"]) && !message["thinking"],
    error: reply["status"] === "failed" || reply["object"] === "error" ? (reply["error"] ?? reply) : null,
  };
}

function isEmptyContent(content: unknown): boolean {
  return (
    content === undefined || content === null || content === "" || (Array.isArray(content) && content.length === 0)
  );
}

function hasItems(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}
