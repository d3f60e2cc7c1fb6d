import { objectsOf, repeated, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { firstOf, invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";
import type { AnthropicRequest } from "./anthropic-request.ts";

function blocksOf(message: JsonObject | undefined): readonly JsonObject[] {
  return objectsOf(message?.["content"]);
}

function idsOf(blocks: readonly JsonObject[], type: string, field: string): readonly string[] {
  return blocks.filter((block) => block["type"] === type).map((block) => textOf(block[field]));
}

/** Returns the results at the start of a message. The service ignores results after other content. */
function leadingResults(message: JsonObject | undefined): readonly string[] {
  const blocks = blocksOf(message);
  const end = blocks.findIndex((block) => block["type"] !== "tool_result");
  return idsOf(end === -1 ? blocks : blocks.slice(0, end), "tool_result", "tool_use_id");
}

function checkResults(message: JsonObject, index: number, calls: readonly string[]): Violation | null {
  const results = idsOf(blocksOf(message), "tool_result", "tool_use_id");
  const twice = repeated(results)[0];
  if (twice !== undefined)
    return invalidRequest(
      `messages.${index}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${twice}`,
    );
  return firstOf(blocksOf(message), (block, position) => {
    if (block["type"] !== "tool_result" || calls.includes(textOf(block["tool_use_id"]))) return null;
    return invalidRequest(
      `messages.${index}.content.${position}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${textOf(block["tool_use_id"])}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    );
  });
}

/** Requires exactly one result for each call in the next message, and no result without a call. */
export function checkToolPairs({ body }: AnthropicRequest): Violation | null {
  const messages = objectsOf(body["messages"]);
  const seen = new Set<string>();
  return firstOf(messages, (message, index) => {
    const twice = firstOf(blocksOf(message), (block, position) => {
      if (block["type"] !== "tool_use") return null;
      const id = textOf(block["id"]);
      if (seen.has(id)) return invalidRequest(`messages.${index}.content.${position}: \`tool_use\` ids must be unique`);
      seen.add(id);
      return null;
    });
    if (twice) return twice;
    const previous = idsOf(blocksOf(messages[index - 1]), "tool_use", "id");
    const results = checkResults(message, index, previous);
    if (results) return results;
    const answered = leadingResults(messages[index + 1]);
    const open = idsOf(blocksOf(message), "tool_use", "id").filter((id) => !answered.includes(id));
    if (open.length === 0) return null;
    return invalidRequest(
      `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    );
  });
}
