import { isObject, listOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { invalidRequest } from "../violation.ts";
import type { Violation } from "../violation.ts";

/** Visits every object schema with its path. Returns the first problem in the order of the schema. */
function firstProblem(
  schema: unknown,
  path: readonly string[],
  problemOf: (schema: JsonObject, path: readonly string[]) => string | null,
): string | null {
  if (!isObject(schema)) return null;
  const own = problemOf(schema, path);
  if (own !== null) return own;
  const { properties, $defs, items, anyOf } = schema;
  const named = (value: unknown, keyword: string): readonly (readonly [unknown, readonly string[]])[] =>
    isObject(value) ? Object.entries(value).map(([name, one]) => [one, [...path, keyword, name]]) : [];
  const parts = [
    ...named(properties, "properties"),
    [items, [...path, "items"]] as const,
    ...listOf(anyOf).map((one, index) => [one, [...path, "anyOf", String(index)]] as const),
    ...named($defs, "$defs"),
  ];
  for (const [part, at] of parts) {
    const problem = firstProblem(part, at, problemOf);
    if (problem !== null) return problem;
  }
  return null;
}

const unsupportedByAnthropic: Readonly<Record<string, readonly string[]>> = {
  string: ["minLength", "maxLength"],
  integer: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  array: ["maxItems", "uniqueItems"],
};

/** Anthropic compiles the schema of `output_config.format` into a grammar, which knows a part of JSON Schema. */
export function anthropicFormatViolation(body: JsonObject, hasJsonOutput: boolean): Violation | null {
  const config = body["output_config"];
  const format = isObject(config) ? config["format"] : undefined;
  if (format === undefined || format === null) return null;
  const at = "output_config.format";
  if (!isObject(format) || format["type"] !== "json_schema")
    return invalidRequest(`${at}.type: Input should be 'json_schema'`);
  if (!hasJsonOutput) return invalidRequest(`'${textOf(body["model"])}' does not support output format.`);
  if (!isObject(format["schema"])) return invalidRequest(`${at}.schema: Field required`);
  const problem = firstProblem(format["schema"], [], (schema) => {
    const type = textOf(schema["type"]);
    if (type === "object" && schema["additionalProperties"] !== false)
      return "For 'object' type, 'additionalProperties' must be explicitly set to false";
    const unsupported = (unsupportedByAnthropic[type] ?? []).find((keyword) => schema[keyword] !== undefined);
    return unsupported === undefined ? null : `For '${type}' type, property '${unsupported}' is not supported`;
  });
  return problem === null ? null : invalidRequest(`${at}.schema: ${problem}`);
}

/** Python prints a path as a tuple, with a comma behind a single element. */
function contextOf(path: readonly string[]): string {
  return `(${path.map((part) => `'${part}'`).join(", ")}${path.length === 1 ? "," : ""})`;
}

/** OpenAI checks the whole schema in strict mode. Both APIs name the format `response_format`. */
export function openAiFormatViolation(format: unknown, param: string): Violation | null {
  if (!isObject(format)) return null;
  const name = textOf(format["name"]);
  if (name === "")
    return invalidRequest(
      `Missing required parameter: '${param}.name'.`,
      `${param}.name`,
      "missing_required_parameter",
    );
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name))
    return invalidRequest(
      `Invalid '${param}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
      `${param}.name`,
      "invalid_value",
    );
  const { schema, strict } = format;
  const refuse = (reason: string): Violation =>
    invalidRequest(`Invalid schema for response_format '${name}': ${reason}`, param, "invalid_json_schema");
  if (!isObject(schema) || schema["type"] !== "object")
    return refuse(
      `schema must be a JSON Schema of 'type: "object"', got 'type: "${isObject(schema) ? textOf(schema["type"]) || "None" : "None"}"'.`,
    );
  if (strict !== true) return null;
  const problem = firstProblem(schema, [], strictProblem);
  return problem === null ? null : refuse(problem);
}

function strictProblem(schema: JsonObject, path: readonly string[]): string | null {
  if (schema["type"] !== "object") return null;
  const at = `In context=${contextOf(path)}`;
  if (schema["additionalProperties"] !== false)
    return `${at}, 'additionalProperties' is required to be supplied and to be false.`;
  const names = isObject(schema["properties"]) ? Object.keys(schema["properties"]) : [];
  const missing = names.find((one) => !listOf(schema["required"]).includes(one));
  return missing === undefined
    ? null
    : `${at}, 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`;
}

/** Responses name a forced function beside the type, where Chat Completions nest it. */
export function responsesChoiceViolation(body: JsonObject): Violation | null {
  const choice = body["tool_choice"];
  if (choice === undefined) return null;
  const tools = listOf(body["tools"]).filter(isObject);
  if (choice === "required" && tools.length === 0)
    return invalidRequest("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice");
  if (typeof choice === "string")
    return ["none", "auto", "required"].includes(choice)
      ? null
      : invalidRequest(
          `Invalid value: '${choice}'. Supported values are: 'none', 'auto', and 'required'.`,
          "tool_choice",
          "invalid_value",
        );
  if (!isObject(choice) || choice["type"] !== "function") return null;
  const isKnown = tools.some(({ name }) => name === choice["name"]);
  return isKnown ? null : invalidRequest(`Tool choice 'function' not found in 'tools' parameter.`, "tool_choice");
}
