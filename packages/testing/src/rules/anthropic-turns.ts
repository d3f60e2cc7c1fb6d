import { isObject, listOf, objectsOf, textOf, unknownKey } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { firstOf, firstViolation, invalidRequest } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";
import type { AnthropicRequest } from "./anthropic-request.ts";

const refusedRole =
  'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.';

/** A model may accept system messages inside the list by itself, or only with a beta header. */
function takesSystemMessages({ betas, model }: AnthropicRequest): boolean {
  return model.systemMessages || betas.some((beta) => beta.startsWith("mid-conversation-"));
}

function checkShape(message: unknown, index: number, request: AnthropicRequest): Violation | null {
  const at = `messages.${index}`;
  if (!isObject(message)) return invalidRequest(`${at}: Input should be a valid dictionary`);
  const role = message["role"];
  if (role === undefined) return invalidRequest(`${at}.role: Field required`);
  if (role === "system" && !takesSystemMessages(request)) return invalidRequest(refusedRole);
  if (!["user", "assistant", "system"].includes(textOf(role)))
    return invalidRequest(`${at}.role: Input should be 'user' or 'assistant'`);
  const allowed = new Set(["role", "content"]);
  if (role === "system" && request.betas.some((beta) => beta.startsWith("mid-conversation-system-clear-at-")))
    allowed.add("clear_at");
  const unknown = unknownKey(message, allowed);
  if (unknown !== undefined) return invalidRequest(`${at}.${unknown}: Extra inputs are not permitted`);
  if (message["content"] === undefined) return invalidRequest(`${at}.content: Field required`);
  if (typeof message["content"] !== "string" && !Array.isArray(message["content"]))
    return invalidRequest(`${at}.content: Input should be a valid string or list`);
  return null;
}

const shapes: Rule<AnthropicRequest> = (request) => {
  const messages = listOf(request.body["messages"]);
  if (messages.length === 0) return invalidRequest("messages: at least one message is required");
  return firstOf(messages, (message, index) => checkShape(message, index, request));
};

/** A compaction block replaces the messages that it summarizes, so its message may open the list. */
function isCompaction(message: JsonObject | undefined): boolean {
  const blocks = objectsOf(message?.["content"]);
  return blocks.length > 0 && blocks.every((block) => block["type"] === "compaction");
}

const opening: Rule<AnthropicRequest> = ({ body }) => {
  const first = objectsOf(body["messages"]).find((message) => message["role"] !== "system");
  return first?.["role"] === "user" || isCompaction(first)
    ? null
    : invalidRequest('messages: first message must use the "user" role');
};

const emptiness: Rule<AnthropicRequest> = ({ body }) => {
  const messages = objectsOf(body["messages"]);
  return firstOf(messages, (message, index) => {
    const isFinalAssistant = index === messages.length - 1 && message["role"] === "assistant";
    const content = message["content"] as string | readonly unknown[];
    if (content.length > 0 || isFinalAssistant) return null;
    const rule = "all messages must have non-empty content except for the optional final assistant message";
    return invalidRequest(`messages.${index}: ${rule}`);
  });
};

function closingText(message: JsonObject): string {
  if (typeof message["content"] === "string") return message["content"];
  const last = objectsOf(message["content"]).at(-1);
  return last?.["type"] === "text" ? textOf(last["text"]) : "";
}

const ending: Rule<AnthropicRequest> = ({ body, model, countOnly }) => {
  const last = objectsOf(body["messages"]).at(-1);
  if (!last || last["role"] !== "assistant") return null;
  // The pair rule reports an open call, so this rule must not report it first.
  if (objectsOf(last["content"]).some((block) => block["type"] === "tool_use")) return null;
  if (!model.prefill && !countOnly)
    return invalidRequest(
      "This model does not support assistant message prefill. The conversation must end with a user message.",
    );
  return /\s$/.test(closingText(last))
    ? invalidRequest("messages: final assistant content cannot end with trailing whitespace")
    : null;
};

export function checkTurns(request: AnthropicRequest): Violation | null {
  return firstViolation(request, [shapes, opening, emptiness, ending]);
}
