import { providerLimits } from "@throughline/core/internal";
import { isObject, listOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { firstOf, invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";
import {
  checkName,
  checkTools,
  emptyArray,
  missing,
  tooLong,
  unsupportedValue,
  wantString,
  wrongType,
} from "./openai-shapes.ts";

const roles = ["assistant", "system", "developer", "user"];
const longestText = 10_485_760;
const inputParts = ["input_text", "input_image", "input_file"];
const outputParts = ["output_text", "refusal"];

/** Maps item types to the required prefix of their ids; null allows any id. */
const itemTypes: Readonly<Record<string, string | null>> = {
  message: "msg",
  function_call: "fc",
  function_call_output: "fc",
  reasoning: "rs",
  item_reference: null,
  custom_tool_call: "ctc",
  custom_tool_call_output: null,
  web_search_call: "ws",
  compaction: null,
  additional_tools: null,
  compaction_trigger: null,
  agent_message: null,
  tool_search_call: null,
  tool_search_output: null,
};

function checkPart(part: unknown, param: string, role: string): Violation | null {
  if (!isObject(part)) return wrongType(param, "an object", part);
  if (part["type"] === undefined) return missing(`${param}.type`);
  const supported = role === "assistant" ? outputParts : inputParts;
  if (!supported.includes(textOf(part["type"]))) return unsupportedValue(textOf(part["type"]), param, supported);
  if (part["type"] !== "input_text" && part["type"] !== "output_text") return null;
  return wantString(part["text"], `${param}.text`);
}

function checkMessageItem(item: JsonObject, at: string): Violation | null {
  if (item["role"] === undefined) return missing(`${at}.role`);
  const role = textOf(item["role"]);
  if (!roles.includes(role)) return unsupportedValue(role, `${at}.role`, roles);
  const content = item["content"];
  if (content === undefined) return missing(`${at}.content`);
  if (typeof content === "string") return tooLong(content, `${at}.content`, longestText);
  if (!Array.isArray(content)) return wrongType(`${at}.content`, "one of an array of objects or string", content);
  return firstOf(listOf(content), (part, index) => checkPart(part, `${at}.content[${index}]`, role));
}

function checkCallId(item: JsonObject, at: string): Violation | null {
  const shape = wantString(item["call_id"], `${at}.call_id`);
  if (shape) return shape;
  if (item["call_id"] === "")
    return invalidRequest(
      `Invalid '${at}.call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
      `${at}.call_id`,
      "empty_string",
    );
  return tooLong(textOf(item["call_id"]), `${at}.call_id`, providerLimits["openai-responses"].callId.maxLength);
}

function checkOutput(item: JsonObject, at: string): Violation | null {
  const output = item["output"];
  if (output === undefined) return missing(`${at}.output`);
  if (typeof output === "string") return tooLong(output, `${at}.output`, longestText);
  if (!Array.isArray(output)) return wrongType(`${at}.output`, "one of a string or array of objects", output);
  if (output.length === 0) return emptyArray(`${at}.output`);
  return firstOf(listOf(output), (part, index) => checkPart(part, `${at}.output[${index}]`, "user"));
}

function checkAdditionalTools(item: JsonObject, at: string): Violation | null {
  if (item["role"] === undefined) return missing(`${at}.role`);
  if (item["role"] !== "developer") return unsupportedValue(textOf(item["role"]), `${at}.role`, ["developer"]);
  if (item["tools"] === undefined) return missing(`${at}.tools`);
  return checkTools(item, false, at);
}

/** Checks one input item. `at` is its path, such as `input[0]`. */
export function checkItem(item: unknown, at: string): Violation | null {
  if (!isObject(item)) return wrongType(at, "an object", item);
  // Only messages may omit their type.
  const type = item["type"] === undefined ? "message" : textOf(item["type"]);
  if (!(type in itemTypes)) return unsupportedValue(type, at, Object.keys(itemTypes));
  const prefix = itemTypes[type];
  const id = item["id"];
  if (typeof id === "string" && prefix && !id.startsWith(prefix))
    return invalidRequest(
      `Invalid '${at}.id': '${id}'. Expected an ID that begins with '${prefix}'.`,
      `${at}.id`,
      "invalid_value",
    );
  if (type === "message") return checkMessageItem(item, at);
  if (type === "function_call")
    return (
      checkCallId(item, at) ?? checkName(item["name"], `${at}.name`) ?? wantString(item["arguments"], `${at}.arguments`)
    );
  if (type === "custom_tool_call")
    return checkCallId(item, at) ?? checkName(item["name"], `${at}.name`) ?? wantString(item["input"], `${at}.input`);
  if (type === "function_call_output" || type === "custom_tool_call_output")
    return checkCallId(item, at) ?? checkOutput(item, at);
  if (type === "additional_tools") return checkAdditionalTools(item, at);
  if (type !== "reasoning") return null;
  if (id === undefined) return missing(`${at}.id`);
  return item["summary"] === undefined ? missing(`${at}.summary`) : null;
}
