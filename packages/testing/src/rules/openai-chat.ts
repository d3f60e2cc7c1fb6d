import { isInteger, isObject, listOf, objectsOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import type { SimulatedModel } from "../model-table.ts";
import { firstOf, firstViolation, invalidRequest } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";
import { checkMessage } from "./openai-chat-messages.ts";
import { openAiFormatViolation } from "./output-schemas.ts";
import { checkTools, emptyArray, missing, unsupportedValue, wantString, wrongType } from "./openai-shapes.ts";

export interface OpenAiChatRequest {
  readonly body: JsonObject;
  readonly model: SimulatedModel;
}

const required: Rule<OpenAiChatRequest> = ({ body }) => {
  if (body["model"] === undefined) return invalidRequest("you must provide a model parameter");
  const model = wantString(body["model"], "model");
  if (model) return model;
  const messages = body["messages"];
  if (messages === undefined) return missing("messages");
  if (!Array.isArray(messages)) return wrongType("messages", "an array of objects", messages);
  return messages.length === 0 ? emptyArray("messages") : null;
};

const outputLimit: Rule<OpenAiChatRequest> = ({ body, model }) => {
  if (body["max_tokens"] !== undefined && model.completionTokensOnly)
    return invalidRequest(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      "max_tokens",
      "unsupported_parameter",
    );
  return firstOf(["max_tokens", "max_completion_tokens"], (param) => {
    const asked = body[param];
    if (asked === undefined || asked === null) return null;
    if (!isInteger(asked)) return wrongType(param, "an integer", asked);
    if (asked < 1)
      return invalidRequest(
        `Invalid '${param}': integer below minimum value. Expected a value >= 1, but got ${asked} instead.`,
        param,
        "integer_below_min_value",
      );
    if (asked <= model.maxOutputTokens) return null;
    return invalidRequest(
      `${param} is too large: ${asked}. This model supports at most ${model.maxOutputTokens} completion tokens, whereas you provided ${asked}.`,
      param,
      "invalid_value",
    );
  });
};

const streaming: Rule<OpenAiChatRequest> = ({ body }) =>
  body["stream_options"] !== undefined && body["stream_options"] !== null && body["stream"] !== true
    ? invalidRequest("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    : null;

const messages: Rule<OpenAiChatRequest> = ({ body, model }) =>
  firstOf(listOf(body["messages"]), (message, index) => checkMessage(message, `messages[${index}]`, model));

function callIds(message: JsonObject | undefined): readonly string[] {
  return objectsOf(message?.["tool_calls"]).map((call) => textOf(call["id"]));
}

/**
 * Returns the ids that the tool messages directly after the message at `index` answer. Any other message ends the list.
 */
function answersAfter(list: readonly JsonObject[], index: number): readonly string[] {
  const following = list.slice(index + 1);
  const end = following.findIndex((message) => message["role"] !== "tool");
  return (end === -1 ? following : following.slice(0, end)).map((message) => textOf(message["tool_call_id"]));
}

const answeredCalls: Rule<OpenAiChatRequest> = ({ body }) => {
  const list = objectsOf(body["messages"]);
  return firstOf(list, (message, index) => {
    const answers = answersAfter(list, index);
    const open = callIds(message).filter((id) => !answers.includes(id));
    if (open.length === 0) return null;
    return invalidRequest(
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(", ")}`,
      `messages.[${index + 1 + answers.length}].role`,
    );
  });
};

const calledAnswers: Rule<OpenAiChatRequest> = ({ body }) => {
  const list = objectsOf(body["messages"]);
  return firstOf(list, (message, index) => {
    if (message["role"] !== "tool") return null;
    const caller = list.findLastIndex((earlier, at) => at < index && earlier["role"] !== "tool");
    const id = textOf(message["tool_call_id"]);
    const param = `messages.[${index}].role`;
    if (!callIds(list[caller]).includes(id))
      return invalidRequest(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        param,
      );
    const twice = list.slice(caller + 1, index).some((earlier) => earlier["tool_call_id"] === id);
    return twice ? invalidRequest(`Duplicate value for 'tool_call_id' of ${id} in message[${index}]`, param) : null;
  });
};

const uniqueCalls: Rule<OpenAiChatRequest> = ({ body }) => {
  const seen = new Set<string>();
  return firstOf(objectsOf(body["messages"]), (message, index) =>
    firstOf(callIds(message), (id) => {
      if (seen.has(id)) return invalidRequest(`Duplicate value for 'tool_call_id' of ${id} in message[${index}]`);
      seen.add(id);
      return null;
    }),
  );
};

const format: Rule<OpenAiChatRequest> = ({ body }) => {
  const choice = body["tool_choice"];
  if (typeof choice === "string" && !["none", "auto", "required"].includes(choice))
    return unsupportedValue(choice, "tool_choice", ["none", "auto", "required"]);
  const names = objectsOf(body["tools"]).map((tool) =>
    isObject(tool["function"]) ? tool["function"]["name"] : undefined,
  );
  const wanted = isObject(choice) && isObject(choice["function"]) ? choice["function"]["name"] : undefined;
  const { response_format: asked } = body;
  if (isObject(asked) && asked["type"] === "json_schema") {
    const violation = openAiFormatViolation(asked["json_schema"], "response_format.json_schema");
    if (violation) return violation;
  }
  if (wanted === undefined || names.includes(wanted)) return null;
  return invalidRequest(`Tool choice '${textOf(wanted)}' not found in 'tools' parameter.`, "tool_choice");
};

/**
 * Applies the rules of Chat Completions. They are stricter than the service in two points, because the compatible
 * servers are. Arguments must be JSON, and an id may occur in only one call.
 */
export function checkOpenAiChat(request: OpenAiChatRequest): Violation | null {
  return firstViolation(request, [
    required,
    outputLimit,
    streaming,
    ({ body }) => checkTools(body, true),
    format,
    messages,
    uniqueCalls,
    answeredCalls,
    calledAnswers,
  ]);
}
