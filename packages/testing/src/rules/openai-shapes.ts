import { providerLimits } from "@throughline/core/internal";
import { isObject, listOf, repeated, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { firstOf, invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";

const limits = providerLimits.openai;

function typeName(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal";
  return typeof value === "boolean" ? "a boolean" : "a string";
}

export function missing(param: string): Violation {
  return invalidRequest(`Missing required parameter: '${param}'.`, param, "missing_required_parameter");
}

export function wrongType(param: string, wanted: string, value: unknown): Violation {
  const message = `Invalid type for '${param}': expected ${wanted}, but got ${typeName(value)} instead.`;
  return invalidRequest(message, param, "invalid_type");
}

/** The service reports an absent value and a value of another type differently. */
export function wantString(value: unknown, param: string): Violation | null {
  if (value === undefined) return missing(param);
  return typeof value === "string" ? null : wrongType(param, "a string", value);
}

export function emptyArray(param: string): Violation {
  const message = `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`;
  return invalidRequest(message, param, "empty_array");
}

export function unsupportedValue(value: string, param: string, supported: readonly string[]): Violation {
  const quoted = supported.map((one) => `'${one}'`);
  const list = quoted.length > 2 ? `${quoted.slice(0, -1).join(", ")}, and ${quoted.at(-1)}` : quoted.join(" and ");
  return invalidRequest(`Invalid value: '${value}'. Supported values are: ${list}.`, param, "invalid_value");
}

export function unknownParameter(param: string): Violation {
  return invalidRequest(`Unknown parameter: '${param}'.`, param, "unknown_parameter");
}

/**
 * The service limits the length of one string. Its error names the item and does not mention the length of the prompt.
 */
export function tooLong(text: string, param: string, most: number): Violation | null {
  if (text.length <= most) return null;
  const message = `Invalid '${param}': string too long. Expected a string with maximum length ${most}, but got a string with length ${text.length} instead.`;
  return invalidRequest(message, param, "string_above_max_length");
}

export function checkName(name: unknown, param: string): Violation | null {
  const shape = wantString(name, param);
  if (shape) return shape;
  const long = tooLong(textOf(name), param, limits.toolName.maxLength);
  if (long) return long;
  if (limits.toolName.allowed.test(textOf(name))) return null;
  const message = `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`;
  return invalidRequest(message, param, "invalid_value");
}

/**
 * Checks `tools`. Chat Completions nest a function's name under `function`, Responses do not.
 * @param at the path of the item that has the tools; null means the request itself
 */
export function checkTools(body: JsonObject, nested: boolean, at: string | null = null): Violation | null {
  const tools = body["tools"];
  const list = at === null ? "tools" : `${at}.tools`;
  if (tools === undefined) {
    if (body["tool_choice"] === undefined || body["tool_choice"] === "none" || !nested) return null;
    const message = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
    return invalidRequest(message, "tool_choice");
  }
  if (!Array.isArray(tools)) return wrongType(list, "an array of objects", tools);
  if (tools.length === 0 && nested) return emptyArray(list);
  const named = (tool: unknown): unknown => (isObject(tool) && nested ? tool["function"] : tool);
  const violation = firstOf(listOf(tools), (tool, index) => {
    if (!isObject(tool)) return wrongType(`${list}[${index}]`, "an object", tool);
    if (tool["type"] === undefined) return missing(`${list}[${index}].type`);
    if (tool["type"] === "namespace" && !nested)
      return checkName(tool["name"], `${list}[${index}].name`) ?? checkTools(tool, nested, `${list}[${index}]`);
    if (tool["type"] !== "function" && (tool["type"] !== "custom" || nested)) return null;
    const described = named(tool);
    const param = nested ? `${list}[${index}].function` : `${list}[${index}]`;
    return isObject(described) ? checkName(described["name"], `${param}.name`) : missing(param);
  });
  if (violation) return violation;
  const names = listOf(tools)
    .map(named)
    .filter(isObject)
    .flatMap((tool) => (tool["name"] ? [textOf(tool["name"])] : []));
  const twice = repeated(names)[0];
  return twice === undefined ? null : invalidRequest(`Tool names must be unique. Found duplicate: '${twice}'.`, list);
}
