import { isObject, listOf, objectsOf, repeated, textOf } from "../json-value.ts";
import type { JsonObject } from "../json-value.ts";
import { firstOf, firstViolation } from "../violation.ts";
import type { Rule, Violation } from "../violation.ts";

interface GeminiRequest {
  readonly body: JsonObject;
  readonly needsSignatures: boolean;
}

/** A part must hold exactly one of these fields. */
const dataFields = [
  "text",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
];

function refuse(message: string): Violation {
  return { status: 400, type: "INVALID_ARGUMENT", message };
}

function partsWith(content: JsonObject | undefined, field: string): readonly JsonObject[] {
  return objectsOf(content?.["parts"]).filter((part) => isObject(part[field]));
}

function checkPart(part: unknown, at: string): Violation | null {
  if (!isObject(part))
    return refuse(`Invalid value at '${at}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part)`);
  const set = dataFields.filter((field) => part[field] !== undefined);
  if (set.length === 0) return refuse(`* ${at}.data: required oneof field 'data' must have one initialized field`);
  if (set.length > 1)
    return refuse(`Invalid value at '${at}' (oneof), oneof field 'data' is already set. Cannot set '${set[1]}'`);
  const named = part["functionCall"] ?? part["functionResponse"];
  if (!isObject(named) || textOf(named["name"]) !== "") return null;
  const field = part["functionCall"] === undefined ? "function_response" : "function_call";
  return refuse(`* ${at}.${field}.name: Name cannot be empty.`);
}

function checkContent(content: unknown, index: number): Violation | null {
  const at = `GenerateContentRequest.contents[${index}]`;
  if (!isObject(content)) return refuse(`Invalid value at 'contents[${index}]'`);
  if (content["role"] !== undefined && !["user", "model", "function"].includes(textOf(content["role"])))
    return refuse("Please use a valid role: user, model.");
  const parts = listOf(content["parts"]);
  if (parts.length === 0) return refuse(`* ${at}.parts: contents.parts must not be empty.`);
  return firstOf(parts, (part, position) => checkPart(part, `${at}.parts[${position}]`));
}

const shapes: Rule<GeminiRequest> = ({ body }) => {
  const contents = listOf(body["contents"]);
  if (contents.length === 0) return refuse("* GenerateContentRequest.contents: contents is not specified");
  return firstOf(contents, checkContent);
};

const order: Rule<GeminiRequest> = ({ body }) => {
  const contents = objectsOf(body["contents"]);
  return firstOf(contents, (content, index) => {
    if (partsWith(content, "functionCall").length === 0) return null;
    const before = contents[index - 1];
    if (before && before["role"] !== "model") return null;
    return refuse(
      "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    );
  });
};

const counts: Rule<GeminiRequest> = ({ body }) => {
  const contents = objectsOf(body["contents"]);
  return firstOf(contents, (content, index) => {
    const calls = partsWith(content, "functionCall").length;
    const next = contents[index + 1];
    const orphans =
      partsWith(content, "functionResponse").length > 0 && partsWith(contents[index - 1], "functionCall").length === 0;
    if (orphans)
      return refuse("Please ensure that function response turn comes immediately after a function call turn.");
    // This also rejects a call at the very end, because the service requires its response.
    if (calls === 0 || calls === partsWith(next, "functionResponse").length) return null;
    return refuse(
      "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    );
  });
};

function names(parts: readonly JsonObject[], field: string): readonly string[] {
  return parts.map((part) => (isObject(part[field]) ? textOf(part[field]["name"]) : "")).toSorted();
}

const pairedNames: Rule<GeminiRequest> = ({ body }) => {
  const contents = objectsOf(body["contents"]);
  return firstOf(contents, (content, index) => {
    const responses = partsWith(content, "functionResponse");
    if (responses.length === 0) return null;
    const called = names(partsWith(contents[index - 1], "functionCall"), "functionCall");
    if (names(responses, "functionResponse").join("\n") === called.join("\n")) return null;
    return refuse("Please ensure that the function response names match the names of the function call turn.");
  });
};

/** The first call of every step in the current turn must carry its signature. */
const signatures: Rule<GeminiRequest> = ({ body, needsSignatures }) => {
  if (!needsSignatures) return null;
  const contents = objectsOf(body["contents"]);
  const turn = contents.findLastIndex(
    (content) => content["role"] !== "model" && partsWith(content, "functionResponse").length === 0,
  );
  return firstOf(contents, (content, index) => {
    const first = partsWith(content, "functionCall")[0];
    if (index < turn || !first || textOf(first["thoughtSignature"]) !== "") return null;
    return refuse(
      "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance.",
    );
  });
};

const tools: Rule<GeminiRequest> = ({ body }) => {
  const declared = objectsOf(body["tools"]).flatMap((tool) => objectsOf(tool["functionDeclarations"]));
  const twice = repeated(declared.map((one) => textOf(one["name"])))[0];
  if (twice !== undefined) return refuse(`Duplicate function declaration found: ${twice}`);
  const config = isObject(body["toolConfig"]) ? body["toolConfig"]["functionCallingConfig"] : undefined;
  if (!isObject(config)) return null;
  if (declared.length === 0 && config["mode"] !== "NONE")
    return refuse("Function calling config is set without function_declarations.");
  const allowed = listOf(config["allowedFunctionNames"]);
  if (allowed.length > 0 && config["mode"] !== "ANY")
    return refuse("allowed_function_names should only be set when function calling mode is ANY.");
  const unknown = allowed.find((name) => declared.every((one) => one["name"] !== name));
  return unknown === undefined
    ? null
    : refuse(`allowed_function_names contains a name that is not declared: ${textOf(unknown)}`);
};

/**
 * Checks a request against the rules of Gemini's generateContent, in the service's own order. Returns the first
 * violation, or null for a valid request.
 *
 * @param model decides whether signatures are wanted: Gemini 3 and later want them
 */
export function checkGemini(body: Readonly<Record<string, unknown>>, model: string): Violation | null {
  const needsSignatures = Number(/^gemini-(\d+)/.exec(model)?.[1] ?? 0) >= 3;
  return firstViolation({ body, needsSignatures }, [shapes, tools, order, counts, pairedNames, signatures]);
}
