import { providerLimits } from "@throughline/core/internal";
import { isObject, listOf, parseJson, textOf, unknownKey } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import type { SimulatedModel } from "../model-table.ts";
import { firstOf, invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";
import {
  checkName,
  emptyArray,
  missing,
  tooLong,
  unknownParameter,
  unsupportedValue,
  wantString,
  wrongType,
} from "./openai-shapes.ts";

const roles = ["system", "assistant", "user", "function", "tool", "developer"];
/** The service formerly limited one text to this many characters, and compatible servers kept the limit. */
const longestText = 1_048_576;

const fields: Readonly<Record<string, readonly string[]>> = {
  system: ["role", "content", "name"],
  developer: ["role", "content", "name"],
  user: ["role", "content", "name"],
  assistant: ["role", "content", "name", "refusal", "audio", "tool_calls", "function_call", "annotations"],
  tool: ["role", "content", "tool_call_id"],
  function: ["role", "content", "name"],
};

const partTypes: Readonly<Record<string, readonly string[]>> = {
  user: ["text", "image_url", "input_audio", "file"],
  assistant: ["text", "refusal"],
};

function checkPart(part: unknown, param: string, role: string): Violation | null {
  if (!isObject(part)) return wrongType(param, "an object", part);
  const supported = partTypes[role] ?? ["text"];
  if (part["type"] === undefined) return missing(`${param}.type`);
  if (!supported.includes(textOf(part["type"])))
    return unsupportedValue(textOf(part["type"]), `${param}.type`, supported);
  if (part["type"] === "text")
    return wantString(part["text"], `${param}.text`) ?? tooLong(textOf(part["text"]), `${param}.text`, longestText);
  if (part["type"] !== "image_url") return null;
  const image = part["image_url"];
  if (!isObject(image))
    return image === undefined ? missing(`${param}.image_url`) : wrongType(`${param}.image_url`, "an object", image);
  return wantString(image["url"], `${param}.image_url.url`);
}

function checkContent(message: JsonObject, at: string, role: string): Violation | null {
  const content = message["content"];
  const mayBeNull =
    role === "assistant" && (listOf(message["tool_calls"]).length > 0 || typeof message["refusal"] === "string");
  if (content === undefined || content === null) {
    if (mayBeNull) return null;
    return invalidRequest("Invalid value for 'content': expected a string, got null.", `${at}.content`);
  }
  if (typeof content === "string") return tooLong(content, `${at}.content`, longestText);
  if (!Array.isArray(content)) return wrongType(`${at}.content`, "one of a string or array of objects", content);
  if (content.length === 0) return emptyArray(`${at}.content`);
  return firstOf(listOf(content), (part, index) => checkPart(part, `${at}.content[${index}]`, role));
}

function checkCall(call: unknown, param: string): Violation | null {
  if (!isObject(call)) return wrongType(param, "an object", call);
  const id =
    wantString(call["id"], `${param}.id`) ??
    tooLong(textOf(call["id"]), `${param}.id`, providerLimits.openai.callId.maxLength);
  if (id) return id;
  if (call["type"] === undefined) return missing(`${param}.type`);
  if (call["type"] === "custom") return null;
  if (call["type"] !== "function")
    return unsupportedValue(textOf(call["type"]), `${param}.type`, ["function", "custom"]);
  const described = call["function"];
  if (!isObject(described)) return missing(`${param}.function`);
  const name = checkName(described["name"], `${param}.function.name`);
  if (name) return name;
  const args = wantString(described["arguments"], `${param}.function.arguments`);
  if (args) return args;
  if (parseJson(textOf(described["arguments"]))) return null;
  return invalidRequest(
    `Invalid '${param}.function.arguments': expected a string of JSON.`,
    `${param}.function.arguments`,
    "invalid_value",
  );
}

/** Checks one message. `at` is its path, such as `messages[0]`. */
export function checkMessage(message: unknown, at: string, model: SimulatedModel): Violation | null {
  if (!isObject(message)) return wrongType(at, "an object", message);
  const shape = wantString(message["role"], `${at}.role`);
  if (shape) return shape;
  const role = textOf(message["role"]);
  const allowed = fields[role];
  if (!allowed) return unsupportedValue(role, `${at}.role`, roles);
  const extra = role === "assistant" && model.reasoningContent ? ["reasoning_content"] : [];
  const unknown = unknownKey(message, new Set([...allowed, ...extra]));
  if (unknown !== undefined) return unknownParameter(`${at}.${unknown}`);
  if (role === "tool") {
    const id = wantString(message["tool_call_id"], `${at}.tool_call_id`);
    if (id) return id;
  }
  const calls = message["tool_calls"];
  if (calls !== undefined && calls !== null) {
    if (!Array.isArray(calls)) return wrongType(`${at}.tool_calls`, "an array of objects", calls);
    if (calls.length === 0) return emptyArray(`${at}.tool_calls`);
    const call = firstOf(listOf(calls), (one, index) => checkCall(one, `${at}.tool_calls[${index}]`));
    if (call) return call;
  }
  return checkContent(message, at, role);
}
