import type { TargetName } from "@throughline/history/targets";

/** A request a provider refuses, in its words, and the smallest change that makes it valid. */
export interface RefusedRequest {
  readonly target: TargetName;
  readonly rule: string;
  readonly title: string;
  readonly bad: readonly unknown[];
  /** A part of the provider's text. */
  readonly says: string;
  readonly good: readonly unknown[];
  /** @default one that takes all that any model of the provider takes */
  readonly model?: string;
}

type Wire = Readonly<Record<string, unknown>>;

const hi: Wire = { role: "user", content: "Hi" };

const block = {
  user: (...content: readonly Wire[]): Wire => ({ role: "user", content }),
  reply: (...content: readonly Wire[]): Wire => ({ role: "assistant", content }),
  text: (text: string): Wire => ({ type: "text", text }),
  use: (id: string): Wire => ({ type: "tool_use", id, name: "look", input: {} }),
  answer: (id: string): Wire => ({ type: "tool_result", tool_use_id: id, content: "found" }),
};

const { user, reply, text, use, answer } = block;

const anthropic: readonly Omit<RefusedRequest, "target">[] = [
  {
    rule: "call-answered",
    title: "a call at the end",
    bad: [hi, reply(use("a"))],
    says: "`tool_use` ids were found without `tool_result` blocks immediately after: a",
    good: [hi, reply(use("a")), user(answer("a"))],
  },
  {
    rule: "call-answered",
    title: "words before the result",
    bad: [hi, reply(use("a")), user(text("wait"), answer("a"))],
    says: "must have a corresponding `tool_result` block in the next message",
    good: [hi, reply(use("a")), user(answer("a"), text("wait"))],
  },
  {
    rule: "call-answered",
    title: "the second of two calls open",
    bad: [hi, reply(use("a"), use("b")), user(answer("a"))],
    says: "immediately after: b",
    good: [hi, reply(use("a"), use("b")), user(answer("b"), answer("a"))],
  },
  {
    rule: "result-asked-for",
    title: "a result whose call was cut off",
    bad: [user(answer("a"))],
    says: "unexpected `tool_use_id` found in `tool_result` blocks: a",
    good: [user(text("found"))],
  },
  {
    rule: "result-asked-for",
    title: "a result one turn late",
    bad: [hi, reply(use("a")), user(answer("a")), reply(text("Well.")), user(answer("b"))],
    says: "must have a corresponding `tool_use` block in the previous message",
    good: [hi, reply(use("a")), user(answer("a")), reply(use("b")), user(answer("b"))],
  },
  {
    rule: "id-unique",
    title: "an id used again in the same reply",
    bad: [hi, reply(use("a"), use("a")), user(answer("a"))],
    says: "`tool_use` ids must be unique",
    good: [hi, reply(use("a"), use("a_2")), user(answer("a"), answer("a_2"))],
  },
  {
    rule: "id-unique",
    title: "an id used again in a later reply",
    bad: [hi, reply(use("a")), user(answer("a")), reply(use("a")), user(answer("a"))],
    says: "`tool_use` ids must be unique",
    good: [hi, reply(use("a")), user(answer("a")), reply(use("b")), user(answer("b"))],
  },
  {
    rule: "single-result",
    title: "two results of one call",
    bad: [hi, reply(use("a")), user(answer("a"), answer("a"))],
    says: "each tool_use must have a single result",
    good: [hi, reply(use("a")), user(answer("a"))],
  },
  {
    rule: "single-result",
    title: "two results of one call among others",
    bad: [hi, reply(use("a"), use("b")), user(answer("a"), answer("b"), answer("a"))],
    says: "Found multiple `tool_result` blocks with id: a",
    good: [hi, reply(use("a"), use("b")), user(answer("a"), answer("b"))],
  },
  {
    rule: "text-not-empty",
    title: "an empty block of the user",
    bad: [user(text(""), text("Hi"))],
    says: "text content blocks must be non-empty",
    good: [user(text("Hi"))],
  },
  {
    rule: "text-not-empty",
    title: "an empty block of the assistant",
    bad: [hi, reply(text(""), use("a")), user(answer("a"))],
    says: "text content blocks must be non-empty",
    good: [hi, reply(use("a")), user(answer("a"))],
  },
  {
    rule: "content-not-empty",
    title: "a user message without content",
    bad: [user()],
    says: "all messages must have non-empty content except for the optional final assistant message",
    good: [user(text("Hi"))],
  },
  {
    rule: "content-not-empty",
    title: "a reply without content in the middle",
    bad: [hi, reply(), hi],
    says: "all messages must have non-empty content",
    good: [hi, reply(text("Yes?")), hi],
  },
  {
    rule: "thinking-first",
    title: "a loop that begins with its call",
    bad: [hi, reply(use("a")), user(answer("a"))],
    says: "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    good: [hi, reply(use("a")), user(answer("a")), reply(text("Found.")), hi],
    model: "thinking",
  },
  {
    rule: "thinking-first",
    title: "a loop that begins with words",
    bad: [hi, reply(text("Let me see."), use("a")), user(answer("a"))],
    says: "but found `text`",
    good: [hi],
    model: "thinking",
  },
  {
    rule: "prefill",
    title: "a reply at the end",
    bad: [hi, reply(text("Well"))],
    says: "This model does not support assistant message prefill",
    good: [hi, reply(text("Well")), hi],
    model: "claude-opus-5",
  },
  {
    rule: "prefill",
    title: "a reply at the end of a loop",
    bad: [hi, reply(use("a")), user(answer("a")), reply(text("Found"))],
    says: "The conversation must end with a user message",
    good: [hi, reply(use("a")), user(answer("a"))],
    model: "claude-sonnet-5-5",
  },
  {
    rule: "first-is-user",
    title: "the assistant first",
    bad: [reply(text("Hello")), hi],
    says: 'first message must use the "user" role',
    good: [hi],
  },
  {
    rule: "first-is-user",
    title: "a kept part that begins with a call",
    bad: [reply(use("a")), user(answer("a"))],
    says: 'first message must use the "user" role',
    good: [hi, reply(use("a")), user(answer("a"))],
  },
  { rule: "at-least-one", title: "nothing", bad: [], says: "at least one message is required", good: [hi] },
  {
    rule: "id-pattern",
    title: "an id of another provider",
    bad: [hi, reply(use("call_1|fc_1")), user(answer("call_1|fc_1"))],
    says: "String should match pattern '^[a-zA-Z0-9_-]+$'",
    good: [hi, reply(use("call_1_fc_1")), user(answer("call_1_fc_1"))],
  },
  {
    rule: "id-pattern",
    title: "an id with a space",
    bad: [hi, reply(use("a b")), user(answer("a b"))],
    says: "String should match pattern",
    good: [hi, reply(use("a_b")), user(answer("a_b"))],
  },
];

const call = (id: string): Wire => ({ id, type: "function", function: { name: "look", arguments: "{}" } });
const calls = (...ids: readonly string[]): Wire => ({ role: "assistant", content: null, tool_calls: ids.map(call) });
const tool = (id: string): Wire => ({ role: "tool", tool_call_id: id, content: "found" });

const openai: readonly Omit<RefusedRequest, "target">[] = [
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

const responses: readonly Omit<RefusedRequest, "target">[] = [
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

const gemini: readonly Omit<RefusedRequest, "target">[] = [
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

const bedrock: readonly Omit<RefusedRequest, "target">[] = [
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

const mistral: readonly Omit<RefusedRequest, "target">[] = [
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
];

const ollama: readonly Omit<RefusedRequest, "target">[] = [
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

const tables: readonly (readonly [TargetName, readonly Omit<RefusedRequest, "target">[]])[] = [
  ["anthropic", anthropic],
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
