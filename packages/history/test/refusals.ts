import type { TargetName } from "../src/provider-mappings.ts";
import { anthropicRefusals } from "./anthropic-refusals.ts";
import { hi, type ProviderRefusal, type RefusedRequest, type Wire } from "./refused-request.ts";

const call = (id: string): Wire => ({ id, type: "function", function: { name: "look", arguments: "{}" } });
const calls = (...ids: readonly string[]): Wire => ({ role: "assistant", content: null, tool_calls: ids.map(call) });
const tool = (id: string): Wire => ({ role: "tool", tool_call_id: id, content: "found" });

const openai: readonly ProviderRefusal[] = [
  {
    rule: "call-answered",
    title: "a call at the end",
    bad: [hi, calls("a")],
    says: "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    good: [hi, calls("a"), tool("a")],
  },
  {
    rule: "call-answered",
    title: "the user between two answers",
    bad: [hi, calls("a", "b"), tool("a"), hi, tool("b")],
    says: "The following tool_call_ids did not have response messages: b",
    good: [hi, calls("a", "b"), tool("b"), tool("a"), hi],
  },
  {
    rule: "result-asked-for",
    title: "an answer without a call",
    bad: [hi, tool("a")],
    says: "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
    good: [hi, calls("a"), tool("a")],
  },
  {
    rule: "result-asked-for",
    title: "an answer after the user went on",
    bad: [hi, calls("a"), tool("a"), hi, tool("a")],
    says: "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
    good: [hi, calls("a"), tool("a"), hi],
  },
];

const item = {
  call: (id: string): Wire => ({ type: "function_call", call_id: id, name: "look", arguments: "{}" }),
  output: (id: string): Wire => ({ type: "function_call_output", call_id: id, output: "found" }),
};

const responses: readonly ProviderRefusal[] = [
  {
    rule: "call-answered",
    title: "a call at the end",
    bad: [hi, item.call("call_1")],
    says: "No tool output found for function call call_1.",
    good: [hi, item.call("call_1"), item.output("call_1")],
  },
  {
    rule: "call-answered",
    title: "one of two calls open",
    bad: [hi, item.call("call_1"), item.call("call_2"), item.output("call_1"), hi],
    says: "No tool output found for function call call_2.",
    good: [hi, item.call("call_1"), item.call("call_2"), item.output("call_1"), item.output("call_2"), hi],
  },
  {
    rule: "result-asked-for",
    title: "an output without a call",
    bad: [hi, item.output("call_1")],
    says: "No tool call found for function call output with call_id call_1.",
    good: [hi, item.call("call_1"), item.output("call_1")],
  },
  {
    rule: "result-asked-for",
    title: "an output before its call",
    bad: [hi, item.output("call_1"), item.call("call_1")],
    says: "No tool call found for function call output with call_id call_1.",
    good: [hi, item.call("call_1"), item.output("call_1")],
  },
];

const part = {
  user: (...parts: readonly Wire[]): Wire => ({ role: "user", parts }),
  model: (...parts: readonly Wire[]): Wire => ({ role: "model", parts }),
  text: (value: string): Wire => ({ text: value }),
  call: (more: Wire = {}): Wire => ({ functionCall: { name: "look", args: {} }, ...more }),
  response: (): Wire => ({ functionResponse: { name: "look", response: { output: "found" } } }),
};

const ask = part.user(part.text("Hi"));
const counted = "the number of function response parts is equal to the number of function call parts";
const ordered = "function call turn comes immediately after a user turn or after a function response turn";
const unsigned = "Function call is missing a thought_signature in functionCall parts";

const gemini: readonly ProviderRefusal[] = [
  {
    rule: "call-answered",
    title: "one response to two calls",
    bad: [ask, part.model(part.call(), part.call()), part.user(part.response())],
    says: counted,
    good: [ask, part.model(part.call(), part.call()), part.user(part.response(), part.response())],
  },
  {
    rule: "call-answered",
    title: "words in place of the response",
    bad: [ask, part.model(part.call()), ask],
    says: counted,
    good: [ask, part.model(part.call()), part.user(part.response()), ask],
  },
  {
    rule: "call-order",
    title: "a call first",
    bad: [part.model(part.call()), part.user(part.response())],
    says: ordered,
    good: [ask, part.model(part.call()), part.user(part.response())],
  },
  {
    rule: "call-order",
    title: "a call after the model's own words",
    bad: [ask, part.model(part.text("Let me see.")), part.model(part.call()), part.user(part.response())],
    says: ordered,
    good: [ask, part.model(part.text("Let me see."), part.call()), part.user(part.response())],
  },
  {
    rule: "call-signature",
    title: "a call without a signature",
    bad: [ask, part.model(part.call()), part.user(part.response())],
    says: unsigned,
    good: [ask, part.model(part.call({ thoughtSignature: "c2ln" })), part.user(part.response())],
    model: "gemini-3-pro",
  },
  {
    rule: "call-signature",
    title: "a second step without a signature",
    bad: [
      ask,
      part.model(part.call({ thoughtSignature: "c2ln" })),
      part.user(part.response()),
      part.model(part.call()),
      part.user(part.response()),
    ],
    says: unsigned,
    good: [
      ask,
      part.model(part.call({ thoughtSignature: "c2ln" })),
      part.user(part.response()),
      part.model(part.call({ thoughtSignature: "c2ln" })),
      part.user(part.response()),
    ],
    model: "gemini-3-flash",
  },
];

const converse = {
  user: (...content: readonly Wire[]): Wire => ({ role: "user", content }),
  reply: (...content: readonly Wire[]): Wire => ({ role: "assistant", content }),
  text: (value: string): Wire => ({ text: value }),
  use: (id: string): Wire => ({ toolUse: { toolUseId: id, name: "look", input: {} } }),
  answer: (id: string): Wire => ({ toolResult: { toolUseId: id, content: [{ text: "found" }] } }),
};

const asked = converse.user(converse.text("Hi"));

const bedrock: readonly ProviderRefusal[] = [
  {
    rule: "call-answered",
    title: "a call at the end",
    bad: [asked, converse.reply(converse.use("a"))],
    says: "Expected toolResult blocks at messages.2.content for the following Ids: a",
    good: [asked, converse.reply(converse.use("a")), converse.user(converse.answer("a"))],
  },
  {
    rule: "call-answered",
    title: "words in place of a result",
    bad: [asked, converse.reply(converse.use("a"), converse.use("b")), converse.user(converse.answer("a"))],
    says: "Expected toolResult blocks at messages.2.content for the following Ids: b",
    good: [
      asked,
      converse.reply(converse.use("a"), converse.use("b")),
      converse.user(converse.answer("a"), converse.answer("b")),
    ],
  },
  {
    rule: "first-is-user",
    title: "the assistant first",
    bad: [converse.reply(converse.text("Hello")), asked],
    says: "A conversation must start with a user message.",
    good: [asked, converse.reply(converse.text("Hello")), asked],
  },
  {
    rule: "first-is-user",
    title: "a kept part that begins with a call",
    bad: [converse.reply(converse.use("a")), converse.user(converse.answer("a"))],
    says: "A conversation must start with a user message.",
    good: [asked, converse.reply(converse.use("a")), converse.user(converse.answer("a"))],
  },
];

const lastRole = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
const nine = "must be a-z, A-Z, 0-9, with a length of 9";

const mistral: readonly ProviderRefusal[] = [
  {
    rule: "last-role",
    title: "a reply at the end",
    bad: [hi, { role: "assistant", content: "Well" }],
    says: lastRole,
    good: [hi, { role: "assistant", content: "Well", prefix: true }],
  },
  {
    rule: "last-role",
    title: "a reply after a tool at the end",
    bad: [hi, calls("abcdefghi"), tool("abcdefghi"), { role: "assistant", content: "Found" }],
    says: lastRole,
    good: [hi, calls("abcdefghi"), tool("abcdefghi")],
  },
  {
    rule: "id-pattern",
    title: "an id of another provider",
    bad: [hi, calls("call_1234"), tool("call_1234")],
    says: nine,
    good: [hi, calls("call01234"), tool("call01234")],
  },
  {
    rule: "id-pattern",
    title: "an id that is too long",
    bad: [hi, calls("abcdefghij"), tool("abcdefghij")],
    says: nine,
    good: [hi, calls("abcdefghi"), tool("abcdefghi")],
  },
  {
    rule: "role-order",
    title: "the user right after a tool",
    bad: [hi, calls("abcdefghi"), tool("abcdefghi"), hi],
    says: "Unexpected role 'user' after role 'tool'",
    good: [hi, calls("abcdefghi"), tool("abcdefghi"), { role: "assistant", content: "Found." }, hi],
  },
  {
    rule: "role-order",
    title: "instructions right after a tool",
    bad: [hi, calls("abcdefghi"), tool("abcdefghi"), { role: "system", content: "Be brief." }, hi],
    says: "Unexpected role 'system' after role 'tool'",
    good: [{ role: "system", content: "Be brief." }, hi, calls("abcdefghi"), tool("abcdefghi")],
  },
];

const ollama: readonly ProviderRefusal[] = [
  {
    rule: "image",
    title: "an image as a data URL",
    bad: [{ ...hi, images: ["data:image/png;base64,AA=="] }],
    says: "illegal base64 data at input byte 4",
    good: [{ ...hi, images: ["AA=="] }],
  },
  {
    rule: "image",
    title: "an image as a link",
    bad: [{ ...hi, images: ["https://example.com/a.png"] }],
    says: "illegal base64 data at input byte 5",
    good: [{ ...hi, images: ["AA=="] }],
  },
  {
    rule: "type",
    title: "content in parts",
    bad: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
    says: "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string",
    good: [hi],
  },
  {
    rule: "type",
    title: "arguments as text",
    bad: [hi, { role: "assistant", content: "", tool_calls: [{ function: { name: "look", arguments: "{}" } }] }],
    says: "of type api.ToolCallFunctionArguments",
    good: [
      hi,
      { role: "assistant", content: "", tool_calls: [{ function: { name: "look", arguments: {} } }] },
      { role: "tool", content: "found", tool_name: "look" },
    ],
  },
];

const tables: readonly (readonly [TargetName, readonly ProviderRefusal[]])[] = [
  ["anthropic", anthropicRefusals],
  ["openai", openai],
  ["openai-responses", responses],
  ["gemini", gemini],
  ["bedrock", bedrock],
  ["mistral", mistral],
  ["ollama", ollama],
];

/** For every error text that is known of a provider, at least two requests that bring it on. */
export const refusedRequests: readonly RefusedRequest[] = tables.flatMap(([target, requests]) =>
  requests.map((request) => ({ target, ...request })),
);
