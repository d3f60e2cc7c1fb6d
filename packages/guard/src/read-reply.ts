import { isFields, readUsage } from "@throughline/core/internal";

/** What the guard looks at in a reply. */
export interface ReplyFacts {
  /** Why the reply ended, in the provider's word; null when it does not state it. */
  readonly stopReason: string | null;
  /** Null when the reply does not state it. */
  readonly promptTokens: number | null;
  /** Tokens that the model wrote; null when the reply does not state it. */
  readonly outputTokens: number | null;
  /** True when the model said nothing. */
  readonly isEmpty: boolean;
  /** An error inside a reply of status 200. */
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
