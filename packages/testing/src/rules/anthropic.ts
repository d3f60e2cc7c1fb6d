import { providerLimits } from "@throughline/core/internal";
import { isInteger, isObject, listOf, objectsOf, repeated, textOf, unknownKey } from "../json-value.ts";
import { firstOf, firstViolation, invalidRequest } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";
import { checkBlock } from "./anthropic-blocks.ts";
import { checkToolPairs } from "./anthropic-pairs.ts";
import type { AnthropicRequest } from "./anthropic-request.ts";
import { checkThinking, controlsBinding } from "./anthropic-thinking.ts";
import { checkTurns } from "./anthropic-turns.ts";
import { anthropicFormatViolation } from "./output-schemas.ts";

const limits = providerLimits.anthropic;

const knownFields = new Set(
  (
    "model messages max_tokens system tools tool_choice stream metadata stop_sequences temperature top_k top_p thinking " +
    "cache_control container diagnostics inference_geo output_config " +
    "service_tier speed user_profile_id workspace_id"
  ).split(" "),
);

/**
 * These fields require a beta header. The simulator does not implement server-held threads and compaction on request.
 * It rejects both like a service without them, because clients then use their fallback.
 */
const betaFields: Readonly<Record<string, string>> = {
  context_management: "context-management-",
  mcp_servers: "mcp-client-",
  output_format: "structured-outputs-",
  fallbacks: "server-side-fallback-",
};

const required: Rule<AnthropicRequest> = ({ body, betas, countOnly }) => {
  const fields = countOnly ? ["model", "messages"] : ["model", "messages", "max_tokens"];
  const missing = fields.find((field) => body[field] === undefined);
  if (missing) return invalidRequest(`${missing}: Field required`);
  if (typeof body["model"] !== "string") return invalidRequest("model: Input should be a valid string");
  if (!Array.isArray(body["messages"])) return invalidRequest("messages: Input should be a valid list");
  const unlocked = Object.entries(betaFields).filter(([, beta]) => betas.some((one) => one.startsWith(beta)));
  const unknown = unknownKey(body, new Set([...knownFields, ...unlocked.map(([field]) => field)]));
  return unknown === undefined ? null : invalidRequest(`${unknown}: Extra inputs are not permitted`);
};

const outputLimit: Rule<AnthropicRequest> = ({ body, countOnly, model }) => {
  const asked = body["max_tokens"];
  if (countOnly && asked === undefined) return null;
  if (!isInteger(asked)) return invalidRequest("max_tokens: Input should be a valid integer");
  if (asked < 1) return invalidRequest("max_tokens: Input should be greater than or equal to 1");
  if (asked <= model.maxOutputTokens) return null;
  const most = `${asked} > ${model.maxOutputTokens}, which is the maximum allowed number of output tokens`;
  return invalidRequest(`max_tokens: ${most} for ${textOf(body["model"])}`);
};

const forcing: readonly string[] = ["any", "tool"];

const thinkingSetting: Rule<AnthropicRequest> = ({ body, betas }) => {
  const thinking = body["thinking"];
  if (!isObject(thinking)) return null;
  const type = textOf(thinking["type"]);
  if (!["enabled", "disabled", "adaptive"].includes(type))
    return invalidRequest(
      `thinking: Input tag '${type}' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'`,
    );
  if (thinking["block_binding"] !== undefined && !controlsBinding(betas))
    return invalidRequest(`thinking.${type}.block_binding: Extra inputs are not permitted`);
  if (type !== "disabled" && isObject(body["tool_choice"]) && forcing.includes(textOf(body["tool_choice"]["type"])))
    return invalidRequest("Thinking may not be enabled when tool_choice forces tool use.");
  if (type !== "enabled") return null;
  const budget = thinking["budget_tokens"];
  if (budget === undefined) return invalidRequest("thinking.enabled.budget_tokens: Field required");
  if (!isInteger(budget) || budget < 1024)
    return invalidRequest("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024");
  if (isInteger(body["max_tokens"]) && body["max_tokens"] <= budget)
    return invalidRequest("`max_tokens` must be greater than `thinking.budget_tokens`.");
  return null;
};

const systemField: Rule<AnthropicRequest> = ({ body }) => {
  const system = body["system"];
  if (system === undefined || typeof system === "string") return null;
  if (!Array.isArray(system)) return invalidRequest("system: Input should be a valid string or list");
  return firstOf(listOf(system), (block, index) => {
    if (!isObject(block) || block["type"] !== "text")
      return invalidRequest(`system.${index}.type: Input should be 'text'`);
    return block["text"] === "" ? invalidRequest("system: text content blocks must be non-empty") : null;
  });
};

function checkTool(tool: unknown, index: number): Violation | null {
  if (!isObject(tool)) return invalidRequest(`tools.${index}: Input should be a valid dictionary`);
  const name = tool["name"];
  const at = `tools.${index}.custom`;
  if (name === undefined) return invalidRequest(`${at}.name: Field required`);
  if (!limits.toolName.allowed.test(textOf(name)))
    return invalidRequest(`${at}.name: String should match pattern '${limits.toolName.allowed.source}'`);
  // Tools that run at the provider have a dated type and no schema.
  if (tool["type"] !== undefined && tool["type"] !== "custom") return null;
  if (!isObject(tool["input_schema"])) return invalidRequest(`${at}.input_schema: Field required`);
  if (tool["input_schema"]["type"] !== "object")
    return invalidRequest(`${at}.input_schema.type: Input should be 'object'`);
  return null;
}

const tools: Rule<AnthropicRequest> = ({ body }) => {
  const violation = firstOf(listOf(body["tools"]), checkTool);
  if (violation) return violation;
  const names = objectsOf(body["tools"]).map((tool) => textOf(tool["name"]));
  if (repeated(names).length > 0) return invalidRequest("tools: Tool names must be unique.");
  const choice = body["tool_choice"];
  if (!isObject(choice)) return null;
  if (!["auto", "none", ...forcing].includes(textOf(choice["type"])))
    return invalidRequest(
      `tool_choice: Input tag '${textOf(choice["type"])}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'`,
    );
  if (names.length === 0)
    return invalidRequest("tool_choice: tool_choice may only be specified while providing tools.");
  if (choice["type"] !== "tool" || names.includes(textOf(choice["name"]))) return null;
  return invalidRequest(`tool_choice: Tool '${textOf(choice["name"])}' not found in provided tools`);
};

const blocks: Rule<AnthropicRequest> = ({ body }) =>
  firstOf(objectsOf(body["messages"]), (message, index) =>
    firstOf(listOf(message["content"]), (block, position) =>
      checkBlock(block, `messages.${index}.content.${position}`, textOf(message["role"])),
    ),
  );

/** A compaction block requires its beta header and an assistant message. Its content is null or not empty. */
const compactions: Rule<AnthropicRequest> = ({ body, betas }) =>
  firstOf(objectsOf(body["messages"]), (message, index) =>
    firstOf(objectsOf(message["content"]), (block, position) => {
      if (block["type"] !== "compaction") return null;
      const at = `messages.${index}.content.${position}`;
      if (!betas.some((beta) => beta.startsWith("compact-")))
        return invalidRequest(
          `${at}: Input tag 'compaction' found using 'type' does not match any of the expected tags: 'text', 'tool_use'`,
        );
      if (message["role"] !== "assistant")
        return invalidRequest(`${at}: \`compaction\` blocks can only be in \`assistant\` messages`);
      if (block["content"] !== "") return null;
      return invalidRequest(`${at}.compaction.content: String should have at least 1 character`);
    }),
  );

const breakpoints: Rule<AnthropicRequest> = ({ body }) => {
  const contents = objectsOf(body["messages"]).flatMap((message) => objectsOf(message["content"]));
  const marked = [...objectsOf(body["tools"]), ...objectsOf(body["system"]), ...contents].filter((part) =>
    isObject(part["cache_control"]),
  );
  if (marked.length <= 4) return null;
  return invalidRequest(`A maximum of 4 blocks with cache_control may be provided. Found ${marked.length}.`);
};

/**
 * Applies the rules of the Messages API. The rules are stricter than the live service in one point: one message must
 * hold all results of parallel calls. The service joins consecutive user messages today, but none of its resellers
 * does.
 */
export function checkAnthropic(request: AnthropicRequest): Violation | null {
  return firstViolation(request, [
    required,
    outputLimit,
    thinkingSetting,
    systemField,
    tools,
    ({ body, model }) => anthropicFormatViolation(body, model.jsonOutput),
    checkTurns,
    blocks,
    compactions,
    checkToolPairs,
    checkThinking,
    breakpoints,
  ]);
}
