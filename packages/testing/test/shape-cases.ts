import { ask, assistant, result, user } from "./anthropic-cases.ts";
import { chat, input } from "./openai-cases.ts";
import type { Body, RefusalCase } from "./refusal-case.ts";

/** A field of the wrong shape and what is said of it; the correction is the same for a whole table. */
type Row = readonly [says: string, bad: Body];

function toCases(good: Body, rows: readonly Row[]): readonly RefusalCase[] {
  return rows.map(([says, bad]) => ({ title: `shape: ${says.slice(0, 90)}`, says, bad, good }));
}

const hi = user("Hi");
const by = (...blocks: readonly Body[]): Body => ask([user(blocks)]);
const called = (block: Body): Body =>
  ask([hi, assistant([{ type: "tool_use", id: "t1", name: "look", input: {}, ...block }]), user([result("t1")])]);
const gave = (block: Body): Body =>
  ask([
    hi,
    assistant([{ type: "tool_use", id: "t1", name: "look", input: {} }]),
    user([{ ...result("t1"), ...block }]),
  ]);
const tooled = (tool: unknown): Body => ask([hi], { tools: [tool] });

/** Anthropic's fields. */
export const anthropicShapeCases: readonly RefusalCase[] = toCases(ask([hi]), [
  ["messages.0.content.0.text.text: Field required", by({ type: "text" })],
  ["messages.0.content.0.image.source.url.url: Field required", by({ type: "image", source: { type: "url" } })],
  ["messages.0.content.0.image.source.file.file_id: Field required", by({ type: "image", source: { type: "file" } })],
  [
    "messages.0.content.0.image.source: Input tag 'data' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'",
    by({ type: "image", source: { type: "data" } }),
  ],
  [
    "messages.0.content.0.image.source.base64.data: Field required",
    by({ type: "image", source: { type: "base64", media_type: "image/png" } }),
  ],
  ["messages.0.content.0.document.source: Field required", by({ type: "document" })],
  ["messages.1.content.0.tool_use.id: Input should be a valid string", called({ id: 1 })],
  ["messages.1.content.0.tool_use.name: Field required", called({ name: undefined })],
  [
    "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'",
    called({ name: "fs.read" }),
  ],
  ["messages.1.content.0.tool_use.input: Field required", called({ input: undefined })],
  ["messages.2.content.0.tool_result.tool_use_id: Field required", gave({ tool_use_id: undefined })],
  ["messages.2.content.0.tool_result.content: Input should be a valid string or list", gave({ content: 5 })],
  [
    "messages.2.content.0.tool_result.content.0: Input tag 'tool_use' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'",
    gave({ content: [{ type: "tool_use" }] }),
  ],
  ["messages.0.content.0: Input should be a valid dictionary", ask([user(["Hi" as unknown as Body])])],
  ["messages.0: Input should be a valid dictionary", ask(["Hi"])],
  ["messages.0.role: Field required", ask([{ content: "Hi" }])],
  ["messages.0.content: Input should be a valid string or list", ask([{ role: "user", content: 5 }])],
  ["model: Input should be a valid string", ask([hi], { model: 5 })],
  ["max_tokens: Input should be a valid integer", ask([hi], { max_tokens: "100" })],
  ["thinking.enabled.budget_tokens: Field required", ask([hi], { thinking: { type: "enabled" } })],
  [
    "Thinking may not be enabled when tool_choice forces tool use.",
    ask([hi], {
      max_tokens: 2000,
      thinking: { type: "enabled", budget_tokens: 1024 },
      tools: [{ name: "look", input_schema: { type: "object" } }],
      tool_choice: { type: "any" },
    }),
  ],
  ["system: Input should be a valid string or list", ask([hi], { system: 5 })],
  ["system.0.type: Input should be 'text'", ask([hi], { system: [{ type: "image" }] })],
  ["tools.0: Input should be a valid dictionary", tooled("look")],
  ["tools.0.custom.name: Field required", tooled({ input_schema: { type: "object" } })],
  ["tools.0.custom.input_schema.type: Input should be 'object'", tooled({ name: "look", input_schema: {} })],
  [
    "tool_choice: tool_choice may only be specified while providing tools.",
    ask([hi], { tool_choice: { type: "auto" } }),
  ],
]);

const said = (content: unknown): Body => chat([{ role: "user", content }]);
const calls = (...list: readonly unknown[]): Body =>
  chat([
    { role: "user", content: "Hi" },
    { role: "assistant", content: null, tool_calls: list },
  ]);
const param = "messages[1].tool_calls[0]";
const type = (field: string, wanted: string, got: string): string =>
  `Invalid type for '${field}': expected ${wanted}, but got ${got} instead.`;
const long = (field: string, most: number, length: number): string =>
  `Invalid '${field}': string too long. Expected a string with maximum length ${most}, but got a string with length ${length} instead.`;

/** Chat Completions' fields. */
export const openAiChatShapeCases: readonly RefusalCase[] = toCases(chat([{ role: "user", content: "Hi" }]), [
  [type("model", "a string", "an integer"), chat([], { model: 5 })],
  [type("max_tokens", "an integer", "a decimal"), chat([{ role: "user", content: "Hi" }], { max_tokens: 1.5 })],
  [
    "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    chat([{ role: "user", content: "Hi" }], { max_tokens: 0 }),
  ],
  [type("messages[0]", "an object", "a string"), chat(["Hi"])],
  [
    "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    said([]),
  ],
  [type("messages[0].content[0]", "an object", "a string"), said(["Hi"])],
  ["Missing required parameter: 'messages[0].content[0].type'.", said([{ text: "Hi" }])],
  ["Missing required parameter: 'messages[0].content[0].text'.", said([{ type: "text" }])],
  [long("messages[0].content[0].text", 1_048_576, 1_048_577), said([{ type: "text", text: "a".repeat(1_048_577) }])],
  ["Missing required parameter: 'messages[0].content[0].image_url'.", said([{ type: "image_url" }])],
  [
    type("messages[0].content[0].image_url", "an object", "a string"),
    said([{ type: "image_url", image_url: "https://example.com/a.png" }]),
  ],
  ["Missing required parameter: 'messages[0].content[0].image_url.url'.", said([{ type: "image_url", image_url: {} }])],
  [
    type("messages[1].tool_calls", "an array of objects", "an object"),
    chat([
      { role: "user", content: "Hi" },
      { role: "assistant", content: "x", tool_calls: {} },
    ]),
  ],
  [type(param, "an object", "a string"), calls("look")],
  ["Invalid value: 'tool'. Supported values are: 'function' and 'custom'.", calls({ id: "c1", type: "tool" })],
  [`Missing required parameter: '${param}.function'.`, calls({ id: "c1", type: "function" })],
  [
    `Missing required parameter: '${param}.function.name'.`,
    calls({ id: "c1", type: "function", function: { arguments: "{}" } }),
  ],
  [
    long(`${param}.function.name`, 64, 65),
    calls({ id: "c1", type: "function", function: { name: "a".repeat(65), arguments: "{}" } }),
  ],
  [type("tools", "an array of objects", "an object"), chat([{ role: "user", content: "Hi" }], { tools: {} })],
  [type("tools[0]", "an object", "a string"), chat([{ role: "user", content: "Hi" }], { tools: ["look"] })],
  ["Missing required parameter: 'tools[0].type'.", chat([{ role: "user", content: "Hi" }], { tools: [{}] })],
  [
    "Missing required parameter: 'tools[0].function'.",
    chat([{ role: "user", content: "Hi" }], { tools: [{ type: "function" }] }),
  ],
  [
    "Tool names must be unique. Found duplicate: 'look'.",
    chat([{ role: "user", content: "Hi" }], {
      tools: [1, 2].map(() => ({ type: "function", function: { name: "look" } })),
    }),
  ],
  [
    "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
    chat([{ role: "user", content: "Hi" }], {
      tools: [{ type: "function", function: { name: "look" } }],
      tool_choice: "any",
    }),
  ],
  [
    "Tool choice 'see' not found in 'tools' parameter.",
    chat([{ role: "user", content: "Hi" }], {
      tools: [{ type: "function", function: { name: "look" } }],
      tool_choice: { type: "function", function: { name: "see" } },
    }),
  ],
]);

const item = (value: unknown): Body => input([value]);
const fnCall = (rest: Body): Body =>
  item({ type: "function_call", call_id: "c1", name: "look", arguments: "{}", ...rest });
const output = (value: unknown): Body => item({ type: "function_call_output", call_id: "c1", output: value });

/** Responses' fields. */
export const openAiResponsesShapeCases: readonly RefusalCase[] = toCases(input("Hi"), [
  [type("input", "one of a string or array of input items", "an object"), input({})],
  [type("input[0]", "an object", "a string"), item("Hi")],
  ["Missing required parameter: 'input[0].role'.", item({ content: "Hi" })],
  ["Missing required parameter: 'input[0].content'.", item({ role: "user" })],
  [type("input[0].content", "one of an array of objects or string", "an integer"), item({ role: "user", content: 5 })],
  [long("input[0].content", 10_485_760, 10_485_761), item({ role: "user", content: "a".repeat(10_485_761) })],
  [type("input[0].content[0]", "an object", "a string"), item({ role: "user", content: ["Hi"] })],
  ["Missing required parameter: 'input[0].content[0].type'.", item({ role: "user", content: [{ text: "Hi" }] })],
  [
    "Missing required parameter: 'input[0].content[0].text'.",
    item({ role: "user", content: [{ type: "input_text" }] }),
  ],
  [
    "Invalid 'input[0].call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.",
    fnCall({ call_id: "" }),
  ],
  ["Missing required parameter: 'input[0].name'.", fnCall({ name: undefined })],
  ["Missing required parameter: 'input[0].arguments'.", fnCall({ arguments: undefined })],
  [type("input[0].output", "one of a string or array of objects", "an object"), output({})],
  [long("input[0].output", 10_485_760, 10_485_761), output("a".repeat(10_485_761))],
  [
    "Invalid 'input[0].output': empty array. Expected an array with minimum length 1, but got an empty array instead.",
    output([]),
  ],
  [
    "Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
    output([{ type: "output_text", text: "x" }]),
  ],
  ["Missing required parameter: 'input[0].id'.", item({ type: "reasoning", summary: [] })],
  ["Missing required parameter: 'input[0].summary'.", item({ type: "reasoning", id: "rs_x" })],
  [
    "Duplicate item found with call_id c1.",
    input(
      [1, 2].flatMap(() => [
        { type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: "x" },
      ]),
    ),
  ],
  [type("max_output_tokens", "an integer", "a string"), input("Hi", { max_output_tokens: "100" })],
  [
    "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 64000, but got 64001 instead.",
    input("Hi", { max_output_tokens: 64_001 }),
  ],
  [type("text", "an object", "a string"), input("Hi", { text: "plain" })],
]);
