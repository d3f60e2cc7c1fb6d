import type { Body, RefusalCase } from "./refusal-case.ts";

const user = { role: "user", content: "Hi" };
export const chat = (messages: unknown, rest: Body = {}): Body => ({ model: "gpt-4o", messages, ...rest });
const call = (id: string, args: unknown = "{}"): Body => ({
  id,
  type: "function",
  function: { name: "look", arguments: args },
});
const calls = (...list: readonly Body[]): Body => ({ role: "assistant", content: null, tool_calls: list });
export const answer = (id: string): Body => ({ role: "tool", tool_call_id: id, content: "found" });
const fn = (name: string): Body => ({ type: "function", function: { name, parameters: { type: "object" } } });
const good = chat([user]);
const answered = chat([user, calls(call("c1")), answer("c1")]);
const unanswered = (ids: string): string =>
  `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids}`;
const orphan =
  "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
const noContent = "Invalid value for 'content': expected a string, got null.";
const empty = (param: string): string =>
  `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`;

/** Chat Completions. */
export const openAiChatCases: readonly RefusalCase[] = [
  { title: "no model", bad: { messages: [user] }, says: "you must provide a model parameter", good },
  { title: "no messages", bad: { model: "gpt-4o" }, says: "Missing required parameter: 'messages'.", good },
  { title: "empty list", bad: chat([]), says: empty("messages"), good },
  {
    title: "messages as an object",
    bad: chat({}),
    says: "Invalid type for 'messages': expected an array of objects, but got an object instead.",
    good,
  },
  {
    title: "unknown role",
    bad: chat([{ role: "bot", content: "x" }]),
    says: "Invalid value: 'bot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
    good,
  },
  { title: "no role", bad: chat([{ content: "x" }]), says: "Missing required parameter: 'messages[0].role'.", good },
  {
    title: "content null without calls",
    bad: chat([user, { role: "assistant", content: null }]),
    says: noContent,
    good: chat([user, { role: "assistant", content: "Yes" }]),
  },
  { title: "user content null", bad: chat([{ role: "user", content: null }]), says: noContent, good },
  {
    title: "content a number",
    bad: chat([{ role: "user", content: 5 }]),
    says: "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an integer instead.",
    good,
  },
  {
    title: "unknown part",
    bad: chat([{ role: "user", content: [{ type: "image" }] }]),
    says: "Invalid value: 'image'. Supported values are: 'text', 'image_url', 'input_audio', and 'file'.",
    good: chat([{ role: "user", content: [{ type: "image_url", image_url: { url: "https://example.com/a.png" } }] }]),
  },
  {
    title: "unknown field of a message",
    bad: chat([{ ...user, ts: 1 }]),
    says: "Unknown parameter: 'messages[0].ts'.",
    good,
  },
  {
    title: "text over the limit of one item",
    bad: chat([{ role: "user", content: "a".repeat(1_048_577) }]),
    says: "Invalid 'messages[0].content': string too long. Expected a string with maximum length 1048576, but got a string with length 1048577 instead.",
    good,
  },
  {
    title: "calls an empty list",
    bad: chat([user, { role: "assistant", content: "x", tool_calls: [] }]),
    says: empty("messages[1].tool_calls"),
    good: chat([user, { role: "assistant", content: "x" }]),
  },
  {
    title: "arguments as an object",
    bad: chat([user, calls(call("c1", {})), answer("c1")]),
    says: "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.",
    good: answered,
  },
  {
    title: "arguments cut off",
    bad: chat([user, calls(call("c1", '{"a":')), answer("c1")]),
    says: "Invalid 'messages[1].tool_calls[0].function.arguments': expected a string of JSON.",
    good: answered,
  },
  {
    title: "call without id",
    bad: chat([user, calls({ ...call("c1"), id: undefined })]),
    says: "Missing required parameter: 'messages[1].tool_calls[0].id'.",
    good: answered,
  },
  {
    title: "call without type",
    bad: chat([user, calls({ ...call("c1"), type: undefined })]),
    says: "Missing required parameter: 'messages[1].tool_calls[0].type'.",
    good: answered,
  },
  {
    title: "call id of 41 characters",
    bad: chat([user, calls(call("c".repeat(41))), answer("c".repeat(41))]),
    says: "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.",
    good: answered,
  },
  { title: "unanswered call", bad: chat([user, calls(call("c1")), user]), says: unanswered("c1"), good: answered },
  { title: "call at the end", bad: chat([user, calls(call("c1"))]), says: unanswered("c1"), good: answered },
  {
    title: "user between call and answer",
    bad: chat([user, calls(call("c1"), call("c2")), answer("c1"), user, answer("c2")]),
    says: unanswered("c2"),
    good: chat([user, calls(call("c1"), call("c2")), answer("c2"), answer("c1"), user]),
  },
  { title: "answer without call", bad: chat([user, answer("c1")]), says: orphan, good: answered },
  {
    title: "answer to another call",
    bad: chat([user, calls(call("c1")), answer("c1"), answer("c2")]),
    says: orphan,
    good: answered,
  },
  {
    title: "two answers to one call",
    bad: chat([user, calls(call("c1")), answer("c1"), answer("c1")]),
    says: "Duplicate value for 'tool_call_id' of c1 in message[3]",
    good: answered,
  },
  {
    title: "one id for two calls",
    bad: chat([user, calls(call("c1"), call("c1")), answer("c1")]),
    says: "Duplicate value for 'tool_call_id' of c1 in message[1]",
    good: answered,
  },
  {
    title: "answer without id",
    bad: chat([user, calls(call("c1")), { role: "tool", content: "x" }]),
    says: "Missing required parameter: 'messages[2].tool_call_id'.",
    good: answered,
  },
  {
    title: "tool name with a dot",
    bad: chat([user], { tools: [fn("fs.read")] }),
    says: "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    good: chat([user], { tools: [fn("fs_read")] }),
  },
  { title: "no tools in the list", bad: chat([user], { tools: [] }), says: empty("tools"), good },
  {
    title: "tool choice without tools",
    bad: chat([user], { tool_choice: "auto" }),
    says: "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    good: chat([user], { tool_choice: "auto", tools: [fn("look")] }),
  },
  {
    title: "max_tokens on a reasoning model",
    bad: chat([user], { model: "gpt-5", max_tokens: 10 }),
    says: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    good: chat([user], { model: "gpt-5", max_completion_tokens: 10 }),
  },
  {
    title: "max_tokens over the model's",
    bad: chat([user], { max_tokens: 64_001 }),
    says: "max_tokens is too large: 64001. This model supports at most 64000 completion tokens, whereas you provided 64001.",
    good: chat([user], { max_tokens: 64_000 }),
  },
  {
    title: "stream options without stream",
    bad: chat([user], { stream_options: { include_usage: true } }),
    says: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    good: chat([user], { stream: true, stream_options: { include_usage: true } }),
  },
];

export const input = (items: unknown, rest: Body = {}): Body => ({ model: "gpt-5", input: items, ...rest });
const said = { role: "user", content: "Hi" };
const customCall = { type: "custom_tool_call", call_id: "c1", name: "exec", input: "text(1)" };
const fnCall = (id: string): Body => ({ type: "function_call", call_id: id, name: "look", arguments: "{}" });
const fnOutput = (id: string): Body => ({ type: "function_call_output", call_id: id, output: "found" });
const paired = input([said, fnCall("c1"), fnOutput("c1")]);
const fine = input([said]);
const reasoning = { type: "reasoning", id: "rs_x", summary: [] };
const message = (id: string): Body => ({
  type: "message",
  id,
  role: "assistant",
  content: [{ type: "output_text", text: "Yes" }],
});

/** Responses. */
export const openAiResponsesCases: readonly RefusalCase[] = [
  { title: "no model", bad: { input: "Hi" }, says: "Missing required parameter: 'model'.", good: input("Hi") },
  {
    title: "no input",
    bad: { model: "gpt-5" },
    says: 'One of "input" or "previous_response_id" or "prompt" or "conversation_id" must be provided.',
    good: fine,
  },
  {
    title: "unknown earlier response",
    bad: input([said], { previous_response_id: "resp_x" }),
    says: "Previous response with id 'resp_x' not found.",
    good: fine,
  },
  {
    title: "unknown item",
    bad: input([{ type: "tool_use" }]),
    says: "Invalid value: 'tool_use'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning', 'item_reference', 'custom_tool_call', 'custom_tool_call_output', 'web_search_call', 'compaction', 'additional_tools', 'compaction_trigger', 'agent_message', 'tool_search_call', and 'tool_search_output'.",
    good: fine,
  },
  {
    title: "unknown role",
    bad: input([{ role: "tool", content: "x" }]),
    says: "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
    good: fine,
  },
  {
    title: "input part by the assistant",
    bad: input([said, { role: "assistant", content: [{ type: "input_text", text: "x" }] }]),
    says: "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    good: input([said, { role: "assistant", content: [{ type: "output_text", text: "x" }] }]),
  },
  {
    title: "chat part by the user",
    bad: input([{ role: "user", content: [{ type: "text", text: "x" }] }]),
    says: "Invalid value: 'text'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
    good: input([{ role: "user", content: [{ type: "input_text", text: "x" }] }]),
  },
  {
    title: "call without output",
    bad: input([said, fnCall("c1")]),
    says: "No tool output found for function call c1.",
    good: paired,
  },
  {
    title: "output without call",
    bad: input([said, fnOutput("c1")]),
    says: "No tool call found for function call output with call_id c1.",
    good: paired,
  },
  {
    title: "custom call without output",
    bad: input([said, customCall]),
    says: "No tool output found for custom tool call c1.",
    good: input([said, customCall, { type: "custom_tool_call_output", call_id: "c1", output: "x" }]),
  },
  {
    title: "custom output without call",
    bad: input([said, { type: "custom_tool_call_output", call_id: "c1", output: "x" }]),
    says: "No tool call found for custom tool call output with call_id c1.",
    good: input([said, customCall, { type: "custom_tool_call_output", call_id: "c1", output: "x" }]),
  },
  {
    title: "more tools without a list",
    bad: input([{ type: "additional_tools", role: "developer" }, said]),
    says: "Missing required parameter: 'input[0].tools'.",
    good: input([{ type: "additional_tools", role: "developer", tools: [] }, said]),
  },
  {
    title: "more tools of another role",
    bad: input([{ type: "additional_tools", role: "user", tools: [] }, said]),
    says: "Invalid value: 'user'. Supported values are: 'developer'.",
    good: input([{ type: "additional_tools", role: "developer", tools: [] }, said]),
  },
  {
    title: "tool without a name in a namespace",
    bad: input([said], { tools: [{ type: "namespace", name: "functions", tools: [{ type: "custom" }] }] }),
    says: "Missing required parameter: 'tools[0].tools[0].name'.",
    good: input([said], {
      tools: [{ type: "namespace", name: "functions", tools: [{ type: "custom", name: "exec" }] }],
    }),
  },
  {
    title: "output before its call",
    bad: input([said, fnOutput("c1"), fnCall("c1")]),
    says: "No tool call found for function call output with call_id c1.",
    good: paired,
  },
  {
    title: "call without call_id",
    bad: input([said, { type: "function_call", name: "look", arguments: "{}" }]),
    says: "Missing required parameter: 'input[1].call_id'.",
    good: paired,
  },
  {
    title: "call_id of 65 characters",
    bad: input([said, fnCall("c".repeat(65)), fnOutput("c".repeat(65))]),
    says: "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
    good: paired,
  },
  {
    title: "arguments as an object",
    bad: input([said, { ...fnCall("c1"), arguments: {} }, fnOutput("c1")]),
    says: "Invalid type for 'input[1].arguments': expected a string, but got an object instead.",
    good: paired,
  },
  {
    title: "output missing",
    bad: input([said, fnCall("c1"), { type: "function_call_output", call_id: "c1" }]),
    says: "Missing required parameter: 'input[2].output'.",
    good: paired,
  },
  {
    title: "item id with another beginning",
    bad: input([said, { ...fnCall("c1"), id: "call_1" }, fnOutput("c1")]),
    says: "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
    good: paired,
  },
  {
    title: "one item twice",
    bad: input([said, message("msg_1"), said, message("msg_1")]),
    says: "Duplicate item found with id msg_1. Remove duplicate items from your input and try again.",
    good: input([said, message("msg_1"), said, message("msg_2")]),
  },
  {
    title: "reasoning at the end",
    bad: input([said, reasoning]),
    says: "Item 'rs_x' of type 'reasoning' was provided without its required following item.",
    good: input([said, reasoning, message("msg_1")]),
  },
  {
    title: "reasoning before a user message",
    bad: input([said, reasoning, said]),
    says: "Item 'rs_x' of type 'reasoning' was provided without its required following item.",
    good: input([said, reasoning, message("msg_1"), said]),
  },
  {
    title: "reasoning that nobody kept",
    bad: input([said, reasoning, message("msg_1")], { store: false }),
    status: 404,
    says: "Item with id 'rs_x' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
    good: input([said, message("msg_1")], { store: false }),
  },
  {
    title: "encrypted content of another service",
    bad: input([said, { ...reasoning, encrypted_content: "abc" }, message("msg_1")]),
    says: "The encrypted content for item rs_x could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
    good: input([said, message("msg_1")]),
  },
  {
    title: "max_output_tokens under 16",
    bad: input("Hi", { max_output_tokens: 15 }),
    says: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead.",
    good: input("Hi", { max_output_tokens: 16 }),
  },
  {
    title: "tool in chat's shape",
    bad: input("Hi", { tools: [fn("look")] }),
    says: "Missing required parameter: 'tools[0].name'.",
    good: input("Hi", { tools: [{ type: "function", name: "look", parameters: {} }] }),
  },
];
