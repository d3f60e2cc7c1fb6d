import { conversationPieces } from "../anthropic/prompt-pieces.ts";
import { isObject, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { hashTexts } from "../thinking-seal.ts";
import type { Seal } from "../thinking-seal.ts";
import { firstOf, firstViolation, invalidRequest } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";
import type { AnthropicRequest } from "./anthropic-request.ts";

const thinkingTypes = ["thinking", "redacted_thinking"];

function isThinking(block: JsonObject | undefined): block is JsonObject {
  return block !== undefined && thinkingTypes.includes(textOf(block["type"]));
}

function signatureOf(block: JsonObject): string {
  return textOf(block["type"] === "thinking" ? block["signature"] : block["data"]);
}

function latestAssistant(messages: readonly JsonObject[]): number {
  return messages.findLastIndex((message) => message["role"] === "assistant");
}

function modified(index: number, position: number): Violation {
  return invalidRequest(
    `messages.${index}.content.${position}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`,
  );
}

function checkSignature(
  request: AnthropicRequest,
  index: number,
  position: number,
  block: JsonObject,
): Violation | null {
  const at = `messages.${index}.content.${position}`;
  const seal = request.seals.open(signatureOf(block));
  if (block["type"] === "redacted_thinking")
    return seal ? null : invalidRequest(`${at}: Invalid \`data\` in \`redacted_thinking\` block`);
  if (!seal) return invalidRequest(`${at}: Invalid \`signature\` in \`thinking\` block`);
  if (seal.text !== hashTexts([textOf(block["thinking"])])) {
    if (index === latestAssistant(objectsOf(request.body["messages"]))) return modified(index, position);
    return invalidRequest(`${at}: Invalid \`signature\` in \`thinking\` block`);
  }
  if (
    !request.model.prefixBinding ||
    dropsUnbound(request) ||
    prefixOf(request.body, index, position, seal) === seal.prefix
  )
    return null;
  return invalidRequest(
    `${at}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`,
  );
}

/**
 * Checks whether a beta header allows the request to choose how the service treats a block of an edited conversation.
 */
export function controlsBinding(betas: readonly string[]): boolean {
  return betas.some((beta) => beta.startsWith("thinking-binding-controls-"));
}

/** Checks whether the request asks to drop such blocks. The service otherwise rejects the request. */
function dropsUnbound({ body, betas }: AnthropicRequest): boolean {
  const binding = isObject(body["thinking"]) ? body["thinking"]["block_binding"] : undefined;
  return controlsBinding(betas) && isObject(binding) && binding["prefix_mismatch_behavior"] === "drop_block";
}

function prefixOf(body: JsonObject, index: number, position: number, seal: Seal): string {
  const messages = objectsOf(body["messages"]);
  const before = conversationPieces(messages.slice(0, index)).length + Math.max(0, position - seal.blocksBefore);
  return hashTexts(
    conversationPieces(messages)
      .slice(0, before)
      .map((piece) => piece.key),
  );
}

const signatures: Rule<AnthropicRequest> = (request) =>
  firstOf(objectsOf(request.body["messages"]), (message, index) =>
    firstOf(objectsOf(message["content"]), (block, position) =>
      isThinking(block) ? checkSignature(request, index, position, block) : null,
    ),
  );

/** In the latest assistant message the service requires all thinking blocks of an answer, in their order. */
const completeness: Rule<AnthropicRequest> = ({ body, seals }) => {
  const messages = objectsOf(body["messages"]);
  const index = latestAssistant(messages);
  const blocks = objectsOf(messages[index]?.["content"]);
  const positions = blocks.flatMap((block, position) => (isThinking(block) ? [position] : []));
  const sealed = positions.map((position) => seals.open(signatureOf(blocks[position] ?? {})));
  return firstOf(positions, (position, order) => {
    const seal = sealed[order];
    if (!seal) return null;
    const before = sealed[order - 1];
    const isNext = seal.index === 0 || (before?.reply === seal.reply && before.index === seal.index - 1);
    const isLast = sealed[order + 1]?.reply !== seal.reply;
    return isNext && (!isLast || seal.index === seal.count - 1) ? null : modified(index, position);
  });
};

function loopStart(messages: readonly JsonObject[]): number {
  let start = -1;
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.["role"] === "assistant") start = index;
    else if (objectsOf(message?.["content"]).every((block) => block["type"] !== "tool_result")) break;
  }
  return start;
}

const opensWithThinking: Rule<AnthropicRequest> = ({ body }) => {
  const setting = body["thinking"];
  if (!isObject(setting) || setting["type"] !== "enabled") return null;
  const messages = objectsOf(body["messages"]);
  const start = loopStart(messages);
  if (start === -1) return null;
  const first = objectsOf(messages[start]?.["content"])[0];
  if (isThinking(first)) return null;
  const found = first ? textOf(first["type"]) : "text";
  return invalidRequest(
    `messages.${start}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${found}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`.`,
  );
};

export function checkThinking(request: AnthropicRequest): Violation | null {
  return firstViolation(request, [signatures, completeness, opensWithThinking]);
}
