import { isObject, listOf, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import type { SimulatedModel } from "../model-table.ts";
import { firstOf, firstViolation } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";

export interface OllamaRequest {
  readonly body: JsonObject;
  readonly model: SimulatedModel;
}

function refuse(message: string): Violation {
  return { status: 400, type: "", message };
}

/** Returns Go's name for the type of a JSON value, because Ollama's errors use it. */
function goType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return typeof value;
}

/** Accepts absent and null values, because Go's decoder leaves the field at its zero value. */
function wantType(value: unknown, field: string, type: string, fits: boolean): Violation | null {
  if (value === undefined || value === null || fits) return null;
  return refuse(`json: cannot unmarshal ${goType(value)} into Go struct field ChatRequest.${field} of type ${type}`);
}

function checkCall(call: unknown): Violation | null {
  const at = "messages.tool_calls";
  const shape = wantType(call, at, "api.ToolCall", isObject(call));
  if (shape || !isObject(call)) return shape;
  const described = call["function"];
  const inner = wantType(described, `${at}.function`, "api.ToolCallFunction", isObject(described));
  if (inner || !isObject(described)) return inner;
  const args = described["arguments"];
  return (
    wantType(described["name"], `${at}.function.name`, "string", typeof described["name"] === "string") ??
    wantType(args, `${at}.function.arguments`, "api.ToolCallFunctionArguments", isObject(args))
  );
}

function checkImage(image: unknown): Violation | null {
  const shape = wantType(image, "messages.images", "api.ImageData", typeof image === "string");
  if (shape) return shape;
  const at = textOf(image).search(/[^A-Za-z0-9+/=]/);
  return at === -1 ? null : refuse(`illegal base64 data at input byte ${at}`);
}

function checkMessage(message: unknown): Violation | null {
  const shape = wantType(message, "messages", "api.Message", isObject(message));
  if (shape || !isObject(message)) return shape;
  const strings = ["role", "content", "thinking", "tool_name", "tool_call_id"];
  const { images, tool_calls: calls } = message;
  return (
    firstOf(strings, (field) =>
      wantType(message[field], `messages.${field}`, "string", typeof message[field] === "string"),
    ) ??
    wantType(images, "messages.images", "[]api.ImageData", Array.isArray(images)) ??
    firstOf(listOf(images), checkImage) ??
    wantType(calls, "messages.tool_calls", "[]api.ToolCall", Array.isArray(calls)) ??
    firstOf(listOf(calls), checkCall)
  );
}

const fields: Rule<OllamaRequest> = ({ body }) =>
  wantType(body["model"], "model", "string", typeof body["model"] === "string") ??
  wantType(body["messages"], "messages", "[]api.Message", Array.isArray(body["messages"])) ??
  wantType(body["stream"], "stream", "bool", typeof body["stream"] === "boolean") ??
  wantType(body["truncate"], "truncate", "bool", typeof body["truncate"] === "boolean") ??
  wantType(body["shift"], "shift", "bool", typeof body["shift"] === "boolean") ??
  wantType(body["tools"], "tools", "api.Tools", Array.isArray(body["tools"])) ??
  wantType(body["options"], "options", "map[string]interface {}", isObject(body["options"])) ??
  firstOf(listOf(body["messages"]), checkMessage);

const modelName: Rule<OllamaRequest> = ({ body }) =>
  textOf(body["model"]) === "" ? refuse("model is required") : null;

const numbers: Rule<OllamaRequest> = ({ body }) => {
  const options = isObject(body["options"]) ? body["options"] : {};
  return firstOf(["num_ctx", "num_predict", "num_keep"], (name) =>
    options[name] === undefined || typeof options[name] === "number"
      ? null
      : refuse(`option "${name}" must be of type integer`),
  );
};

const abilities: Rule<OllamaRequest> = ({ body, model }) => {
  const name = textOf(body["model"]);
  if (listOf(body["tools"]).length > 0 && !model.capabilities.includes("tools"))
    return refuse(`registry.ollama.ai/library/${name} does not support tools`);
  const thinks = body["think"] !== undefined && body["think"] !== null && body["think"] !== false;
  return thinks && !model.capabilities.includes("thinking") ? refuse(`"${name}" does not support thinking`) : null;
};

/** The server quotes the JSON that it received. */
const format: Rule<OllamaRequest> = ({ body }) => {
  const asked = body["format"];
  if (asked === undefined || asked === null || asked === "" || asked === "json" || isObject(asked)) return null;
  return refuse(
    `invalid format: ${JSON.stringify(JSON.stringify(asked))}; expected "json" or a valid JSON Schema object`,
  );
};

/**
 * Checks types only. Ollama leaves roles, order and pairing to the model's template, so the simulator does not check
 * them.
 */
export function checkOllama(request: OllamaRequest): Violation | null {
  return firstViolation(request, [fields, modelName, numbers, format, abilities]);
}
