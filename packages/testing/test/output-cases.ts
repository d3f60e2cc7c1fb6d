import type { Body, RefusalCase } from "./refusal-case.ts";

const messages = [{ role: "user", content: "Hi" }];
const closed = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const open = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const nested = { ...closed, properties: { city: { type: "object", properties: {} } } };
const optional = { ...closed, required: [] };
const limited = { ...closed, properties: { city: { type: "integer", minimum: 1 } } };

const claude = (rest: Body): Body => ({ model: "claude-opus-5", max_tokens: 2000, messages, ...rest });
const claudeTool = { name: "look", input_schema: { type: "object" } };
const claudeFormat = (schema: unknown): Body => claude({ output_config: { format: { type: "json_schema", schema } } });
const thinkingForced = "Thinking may not be enabled when tool_choice forces tool use.";
const mustBeClosed =
  "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false";

export const anthropicOutputCases: readonly RefusalCase[] = [
  { title: "open object", bad: claudeFormat(open), says: mustBeClosed, good: claudeFormat(closed) },
  { title: "open object inside", bad: claudeFormat(nested), says: mustBeClosed, good: claudeFormat(closed) },
  {
    title: "limit of a number",
    bad: claudeFormat(limited),
    says: "output_config.format.schema: For 'integer' type, property 'minimum' is not supported",
    good: claudeFormat(closed),
  },
  {
    title: "format for an older model",
    bad: { ...claudeFormat(closed), model: "claude-sonnet-4-0" },
    says: "'claude-sonnet-4-0' does not support output format.",
    good: claudeFormat(closed),
  },
  {
    title: "unknown choice",
    bad: claude({ tools: [claudeTool], tool_choice: { type: "required" } }),
    says: "tool_choice: Input tag 'required' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'",
    good: claude({ tools: [claudeTool], tool_choice: { type: "any" } }),
  },
  {
    title: "forced call while the model thinks adaptively",
    bad: claude({ tools: [claudeTool], tool_choice: { type: "tool", name: "look" }, thinking: { type: "adaptive" } }),
    says: thinkingForced,
    good: claude({ tools: [claudeTool], tool_choice: { type: "none" }, thinking: { type: "adaptive" } }),
  },
];

const gpt = (schema: unknown, strict: boolean, name = "answer"): Body => ({
  model: "gpt-4o",
  messages,
  response_format: { type: "json_schema", json_schema: { name, schema, strict } },
});
const response = (rest: Body): Body => ({ model: "gpt-4o", input: "Hi", ...rest });
const responseFormat = (schema: unknown, strict: boolean): Body =>
  response({ text: { format: { type: "json_schema", name: "answer", schema, strict } } });
const invalidSchema = (problem: string): string => `Invalid schema for response_format 'answer': ${problem}`;
const notClosed = invalidSchema("In context=(), 'additionalProperties' is required to be supplied and to be false.");
const notRequired = invalidSchema(
  "In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'city'.",
);
const notClosedInside = invalidSchema(
  "In context=('properties', 'city'), 'additionalProperties' is required to be supplied and to be false.",
);

export const openAiChatOutputCases: readonly RefusalCase[] = [
  { title: "strict open object", bad: gpt(open, true), says: notClosed, good: gpt(open, false) },
  { title: "strict optional field", bad: gpt(optional, true), says: notRequired, good: gpt(optional, false) },
  { title: "strict open object inside", bad: gpt(nested, true), says: notClosedInside, good: gpt(closed, true) },
  {
    title: "format with a space in its name",
    bad: gpt(closed, true, "my answer"),
    says: "Invalid 'response_format.json_schema.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    good: gpt(closed, true),
  },
  {
    title: "format that is a list",
    bad: gpt({ type: "array", items: closed }, false),
    says: invalidSchema(`schema must be a JSON Schema of 'type: "object"', got 'type: "array"'.`),
    good: gpt(closed, false),
  },
];

const responseTool = { type: "function", name: "look", parameters: { type: "object" } };

export const openAiResponsesOutputCases: readonly RefusalCase[] = [
  { title: "strict open object", bad: responseFormat(open, true), says: notClosed, good: responseFormat(closed, true) },
  {
    title: "strict optional field",
    bad: responseFormat(optional, true),
    says: notRequired,
    good: responseFormat(optional, false),
  },
  {
    title: "forced tool that is not there",
    bad: response({ tools: [responseTool], tool_choice: { type: "function", name: "book" } }),
    says: "Tool choice 'function' not found in 'tools' parameter.",
    good: response({ tools: [responseTool], tool_choice: { type: "function", name: "look" } }),
  },
  {
    title: "required call without tools",
    bad: response({ tool_choice: "required" }),
    says: "Tool choice 'required' must be specified with 'tools' parameter.",
    good: response({ tools: [responseTool], tool_choice: "required" }),
  },
];

export const ollamaOutputCases: readonly RefusalCase[] = [
  {
    title: "format that is no schema",
    bad: { model: "qwen3", messages, stream: false, format: "yaml" },
    says: `invalid format: "\\"yaml\\""; expected "json" or a valid JSON Schema object`,
    good: { model: "qwen3", messages, stream: false, format: closed },
  },
];
