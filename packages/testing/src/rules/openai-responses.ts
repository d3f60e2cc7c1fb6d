import { isInteger, isObject, listOf, objectsOf, repeated, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import type { SimulatedModel } from "../model-table.ts";
import type { ResponseLedger } from "../openai/response-ledger.ts";
import type { ThinkingSeals } from "../thinking-seal.ts";
import { firstOf, firstViolation, invalidRequest } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";
import { openAiFormatViolation, responsesChoiceViolation } from "./output-schemas.ts";
import { checkItem } from "./openai-response-items.ts";
import { checkTools, wantString, wrongType } from "./openai-shapes.ts";

export interface OpenAiResponsesRequest {
  readonly body: JsonObject;
  readonly model: SimulatedModel;
  readonly ledger: ResponseLedger;
  readonly seals: ThinkingSeals;
}

/** A request continues a stored response, so the items of that response come before its own. */
export function itemsOf({ body, ledger }: Pick<OpenAiResponsesRequest, "body" | "ledger">): readonly JsonObject[] {
  const earlier = ledger.find(textOf(body["previous_response_id"]))?.items ?? [];
  const input = body["input"];
  return [...earlier, ...(typeof input === "string" ? [{ role: "user", content: input }] : objectsOf(input))];
}

const required: Rule<OpenAiResponsesRequest> = ({ body, ledger }) => {
  const model = wantString(body["model"], "model");
  if (model) return model;
  const previous = body["previous_response_id"];
  if (previous !== undefined && previous !== null && !ledger.find(textOf(previous)))
    return invalidRequest(
      `Previous response with id '${textOf(previous)}' not found.`,
      "previous_response_id",
      "previous_response_not_found",
    );
  const input = body["input"];
  if (input === undefined && !previous)
    return invalidRequest(
      'One of "input" or "previous_response_id" or "prompt" or "conversation_id" must be provided.',
      null,
      "missing_required_parameter",
    );
  if (input === undefined || typeof input === "string" || Array.isArray(input)) return null;
  return wrongType("input", "one of a string or array of input items", input);
};

const outputLimit: Rule<OpenAiResponsesRequest> = ({ body, model }) => {
  const asked = body["max_output_tokens"];
  if (asked === undefined || asked === null) return null;
  if (!isInteger(asked)) return wrongType("max_output_tokens", "an integer", asked);
  if (asked < 16)
    return invalidRequest(
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${asked} instead.`,
      "max_output_tokens",
      "integer_below_min_value",
    );
  if (asked <= model.maxOutputTokens) return null;
  return invalidRequest(
    `Invalid 'max_output_tokens': integer above maximum value. Expected a value <= ${model.maxOutputTokens}, but got ${asked} instead.`,
    "max_output_tokens",
    "integer_above_max_value",
  );
};

const shapes: Rule<OpenAiResponsesRequest> = ({ body }) =>
  firstOf(listOf(body["input"]), (item, index) => checkItem(item, `input[${index}]`));

const uniqueItems: Rule<OpenAiResponsesRequest> = (request) => {
  const ids = itemsOf(request).flatMap((item) => (typeof item["id"] === "string" ? [item["id"]] : []));
  const twice = repeated(ids)[0];
  if (twice === undefined) return null;
  return invalidRequest(
    `Duplicate item found with id ${twice}. Remove duplicate items from your input and try again.`,
    "input",
  );
};

function callIds(items: readonly JsonObject[], type: string): readonly string[] {
  return items.filter((item) => item["type"] === type).map((item) => textOf(item["call_id"]));
}

/** Pairs the type of a call with that of its output, and with the term that the service uses in errors. */
const pairedTypes = [
  { call: "function_call", output: "function_call_output", words: "function call" },
  { call: "custom_tool_call", output: "custom_tool_call_output", words: "custom tool call" },
] as const;

const pairs: Rule<OpenAiResponsesRequest> = (request) => {
  const items = itemsOf(request);
  return firstOf(pairedTypes, ({ call, output, words }) => {
    const outputs = callIds(items, output);
    const open = callIds(items, call).find((id) => !outputs.includes(id));
    if (open !== undefined) return invalidRequest(`No tool output found for ${words} ${open}.`, "input");
    const orphan = firstOf(items, (item, index) => {
      if (item["type"] !== output) return null;
      const id = textOf(item["call_id"]);
      if (callIds(items.slice(0, index), call).includes(id)) return null;
      return invalidRequest(`No tool call found for ${words} output with call_id ${id}.`, "input");
    });
    if (orphan) return orphan;
    const twice = repeated(outputs)[0] ?? repeated(callIds(items, call))[0];
    return twice === undefined ? null : invalidRequest(`Duplicate item found with call_id ${twice}.`, "input");
  });
};

/**
 * The service requires the item that a reasoning item led to. Conversely, it rejects that item without its reasoning.
 */
const reasoning: Rule<OpenAiResponsesRequest> = (request) => {
  const items = itemsOf(request);
  return firstOf(items, (item, index) => {
    const id = textOf(item["id"]);
    if (item["type"] === "reasoning") {
      const next = items[index + 1];
      const follows =
        next !== undefined &&
        !pairedTypes.some(({ output }) => output === next["type"]) &&
        (next["role"] ?? "assistant") === "assistant";
      if (follows) return null;
      return invalidRequest(
        `Item '${id}' of type 'reasoning' was provided without its required following item.`,
        "input",
      );
    }
    const wanted = request.ledger.reasoningOf(id);
    if (wanted === undefined || items.slice(0, index).some((earlier) => earlier["id"] === wanted)) return null;
    const type = textOf(item["type"]) || "message";
    return invalidRequest(
      `Item '${id}' of type '${type}' was provided without its required 'reasoning' item: '${wanted}'.`,
      "input",
    );
  });
};

const encrypted: Rule<OpenAiResponsesRequest> = ({ body, seals }) =>
  firstOf(objectsOf(body["input"]), (item) => {
    const content = item["encrypted_content"];
    if (item["type"] !== "reasoning" || typeof content !== "string" || seals.open(content)) return null;
    return invalidRequest(
      `The encrypted content for item ${textOf(item["id"])} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
      null,
      "invalid_encrypted_content",
    );
  });

/** Without storage the service knows a reasoning item only by its encrypted content. */
const persisted: Rule<OpenAiResponsesRequest> = ({ body }) => {
  if (body["store"] !== false) return null;
  const item = objectsOf(body["input"]).find(
    (one) => one["type"] === "reasoning" && typeof one["encrypted_content"] !== "string",
  );
  if (!item) return null;
  return {
    ...invalidRequest(
      `Item with id '${textOf(item["id"])}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
      "input",
    ),
    status: 404,
  };
};

export function checkOpenAiResponses(request: OpenAiResponsesRequest): Violation | null {
  return firstViolation(request, [
    required,
    outputLimit,
    ({ body }) => checkTools(body, false),
    ({ body }) => responsesChoiceViolation(body),
    ({ body }) => {
      const format = isObject(body["text"]) ? body["text"]["format"] : undefined;
      const isSchema = isObject(format) && format["type"] === "json_schema";
      return isSchema ? openAiFormatViolation(format, "text.format") : null;
    },
    ({ body }) =>
      body["text"] === undefined || isObject(body["text"]) ? null : wrongType("text", "an object", body["text"]),
    shapes,
    uniqueItems,
    encrypted,
    persisted,
    reasoning,
    pairs,
  ]);
}
