import type { Body, RefusalCase } from "./refusal-case.ts";

type Block = Body;

export const text = (value: string): Block => ({ type: "text", text: value });
const call = (id: string, input: unknown = {}): Block => ({ type: "tool_use", id, name: "look", input });
export const result = (id: string, content: unknown = "found"): Block => ({
  type: "tool_result",
  tool_use_id: id,
  content,
});
export const user = (content: string | readonly Block[]): Body => ({ role: "user", content });
export const assistant = (content: string | readonly Block[]): Body => ({ role: "assistant", content });

/** A request of these messages. */
export const ask = (messages: unknown, rest: Body = {}): Body => ({
  model: "claude-sonnet-4-5",
  max_tokens: 100,
  messages,
  ...rest,
});

const hi = user("Hi");
const plain = ask([hi]);
const image = (source: unknown): Body => ask([user([{ type: "image", source }])]);
const base64 = (mediaType: string, data: string): Body => image({ type: "base64", media_type: mediaType, data });
const picture = base64("image/png", "iVBORw0KGgo=");
const answered = ask([hi, assistant([call("t1")]), user([result("t1")])]);
const tool = (name: string): Body => ({ name, input_schema: { type: "object" } });
const tags = "'text', 'image', 'document', 'tool_use', 'tool_result', 'thinking', 'redacted_thinking'";
const followed = "Each `tool_use` block must have a corresponding `tool_result` block in the next message.";
const preceded = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.";

/** Fields, roles and the order of messages. */
export const anthropicMessageCases: readonly RefusalCase[] = [
  { title: "no model", bad: { max_tokens: 1, messages: [hi] }, says: "model: Field required", good: plain },
  { title: "no messages", bad: { model: "m", max_tokens: 1 }, says: "messages: Field required", good: plain },
  { title: "no max_tokens", bad: { model: "m", messages: [hi] }, says: "max_tokens: Field required", good: plain },
  {
    title: "max_tokens 0",
    bad: ask([hi], { max_tokens: 0 }),
    says: "max_tokens: Input should be greater than or equal to 1",
    good: ask([hi], { max_tokens: 1 }),
  },
  {
    title: "max_tokens over the model's",
    bad: ask([hi], { max_tokens: 64_001 }),
    says: "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
    good: ask([hi], { max_tokens: 64_000 }),
  },
  { title: "messages no list", bad: ask("Hi"), says: "messages: Input should be a valid list", good: plain },
  {
    title: "unknown field",
    bad: ask([hi], { session: 1 }),
    says: "session: Extra inputs are not permitted",
    good: plain,
  },
  { title: "no message at all", bad: ask([]), says: "messages: at least one message is required", good: plain },
  {
    title: "assistant first",
    bad: ask([assistant("Hello"), hi]),
    says: 'messages: first message must use the "user" role',
    good: ask([hi, assistant("Hello"), hi]),
  },
  {
    title: "unknown role",
    bad: ask([{ role: "tool", content: "x" }]),
    says: "messages.0.role: Input should be 'user' or 'assistant'",
    good: plain,
  },
  {
    title: "system in the list without its beta",
    bad: ask([hi, { role: "system", content: "Be brief." }]),
    says: 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
    good: ask([hi, { role: "system", content: "Be brief." }]),
    goodHeaders: { "anthropic-beta": "mid-conversation-system-2026-04-07" },
  },
  {
    title: "clear_at without its beta",
    bad: ask([hi, { role: "system", content: "x", clear_at: "never" }]),
    says: "messages.1.clear_at: Extra inputs are not permitted",
    good: ask([hi, { role: "system", content: "x" }]),
    headers: { "anthropic-beta": "mid-conversation-system-2026-04-07" },
  },
  {
    title: "unknown field of a message",
    bad: ask([{ ...hi, timestamp: 1 }]),
    says: "messages.0.timestamp: Extra inputs are not permitted",
    good: plain,
  },
  {
    title: "message without content",
    bad: ask([{ role: "user" }]),
    says: "messages.0.content: Field required",
    good: plain,
  },
  {
    title: "empty message",
    bad: ask([user([])]),
    says: "messages.0: all messages must have non-empty content except for the optional final assistant message",
    good: plain,
  },
  {
    title: "empty assistant message in the middle",
    bad: ask([hi, assistant(""), hi]),
    says: "messages.1: all messages must have non-empty content except for the optional final assistant message",
    good: ask([hi, assistant("")]),
  },
  {
    title: "trailing whitespace at the end",
    bad: ask([hi, assistant("So ")], { model: "claude-3-5-haiku-20241022" }),
    says: "messages: final assistant content cannot end with trailing whitespace",
    good: ask([hi, assistant("So")]),
  },
  {
    title: "prefill on a newer model",
    bad: ask([hi, assistant("So")], { model: "claude-opus-4-6" }),
    says: "This model does not support assistant message prefill. The conversation must end with a user message.",
    good: ask([hi, assistant("So"), hi], { model: "claude-opus-4-6" }),
  },
  {
    title: "no version header",
    bad: plain,
    says: "anthropic-version: header is required",
    good: plain,
    headers: { "anthropic-version": "" },
    goodHeaders: { "anthropic-version": "2023-06-01" },
  },
];

/** Content blocks. */
export const anthropicBlockCases: readonly RefusalCase[] = [
  {
    title: "empty text block",
    bad: ask([user([text("")])]),
    says: "messages: text content blocks must be non-empty",
    good: plain,
  },
  {
    title: "blank text block",
    bad: ask([user([text(" \n")])]),
    says: "messages: text content blocks must contain non-whitespace text",
    good: plain,
  },
  {
    title: "block without type",
    bad: ask([user([{ text: "x" }])]),
    says: "messages.0.content.0.type: Field required",
    good: plain,
  },
  {
    title: "unknown block",
    bad: ask([user([{ type: "toolCall" }])]),
    says: `messages.0.content.0: Input tag 'toolCall' found using 'type' does not match any of the expected tags: ${tags}`,
    good: plain,
  },
  {
    title: "unknown field of a block",
    bad: ask([user([{ ...text("x"), _tl: 1 }])]),
    says: "messages.0.content.0.text._tl: Extra inputs are not permitted",
    good: plain,
  },
  {
    title: "call by the user",
    bad: ask([user([call("t1")])]),
    says: "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
    good: answered,
  },
  {
    title: "result by the assistant",
    bad: ask([hi, assistant([result("t1")])]),
    says: "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
    good: answered,
  },
  {
    title: "id with a foreign character",
    bad: ask([hi, assistant([call("t:1")]), user([result("t:1")])]),
    says: "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    good: answered,
  },
  {
    title: "id of 65 characters",
    bad: ask([hi, assistant([call("t".repeat(65))]), user([result("t".repeat(65))])]),
    says: "messages.1.content.0.tool_use.id: String should have at most 64 characters",
    good: ask([hi, assistant([call("t".repeat(64))]), user([result("t".repeat(64))])]),
  },
  {
    title: "call without id",
    bad: ask([hi, assistant([{ type: "tool_use", name: "look", input: {} }])]),
    says: "messages.1.content.0.tool_use.id: Field required",
    good: answered,
  },
  {
    title: "input as a string",
    bad: ask([hi, assistant([call("t1", "{}")]), user([result("t1")])]),
    says: "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    good: answered,
  },
  {
    title: "image in an unknown format",
    bad: base64("image/bmp", "Qk0="),
    says: "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    good: picture,
  },
  {
    title: "image that is no base64",
    bad: base64("image/png", "data:image/png;base64,AA=="),
    says: "messages.0.content.0.image.source.base64.data: Invalid base64 data",
    good: picture,
  },
  {
    title: "image without source",
    bad: image(undefined),
    says: "messages.0.content.0.image.source: Field required",
    good: picture,
  },
  {
    title: "image over 5 MB",
    bad: base64("image/png", "A".repeat(6_990_512)),
    says: "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes",
    good: picture,
  },
  {
    title: "image in an error result",
    bad: ask([
      hi,
      assistant([call("t1")]),
      user([
        {
          ...result("t1", [{ type: "image", source: { type: "url", url: "https://example.com/a.png" } }]),
          is_error: true,
        },
      ]),
    ]),
    says: "messages.2.content.0.tool_result: all content must be type `text` if `is_error` is true",
    good: ask([hi, assistant([call("t1")]), user([{ ...result("t1", [text("no")]), is_error: true }])]),
  },
  {
    title: "five cache breakpoints",
    bad: ask([user(["a", "b", "c", "d", "e"].map((one) => ({ ...text(one), cache_control: { type: "ephemeral" } })))]),
    says: "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    good: ask([user(["a", "b", "c", "d"].map((one) => ({ ...text(one), cache_control: { type: "ephemeral" } })))]),
  },
  {
    title: "empty system block",
    bad: ask([hi], { system: [text("")] }),
    says: "system: text content blocks must be non-empty",
    good: ask([hi], { system: [text("Be brief.")] }),
  },
];

/** Calls and results, tools, thinking. */
export const anthropicToolCases: readonly RefusalCase[] = [
  {
    title: "unanswered call",
    bad: ask([hi, assistant([call("t1")]), hi]),
    says: `messages.1: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: t1. ${followed}`,
    good: answered,
  },
  {
    title: "one of two calls unanswered",
    bad: ask([hi, assistant([call("t1"), call("t2")]), user([result("t1")])]),
    says: `messages.1: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: t2. ${followed}`,
    good: ask([hi, assistant([call("t1"), call("t2")]), user([result("t2"), result("t1")])]),
  },
  {
    title: "call at the end",
    bad: ask([hi, assistant([call("t1")])]),
    says: `messages.1: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: t1. ${followed}`,
    good: answered,
  },
  {
    title: "answer one message late",
    bad: ask([hi, assistant([call("t1")]), hi, user([result("t1")])]),
    says: `messages.1: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: t1. ${followed}`,
    good: answered,
  },
  {
    title: "text before the result",
    bad: ask([hi, assistant([call("t1")]), user([text("Well:"), result("t1")])]),
    says: `messages.1: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: t1. ${followed}`,
    good: ask([hi, assistant([call("t1")]), user([result("t1"), text("Well:")])]),
  },
  {
    title: "orphan result",
    bad: ask([user([result("t9")])]),
    says: `messages.0.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: t9. ${preceded}`,
    good: answered,
  },
  {
    title: "two results of one call",
    bad: ask([hi, assistant([call("t1")]), user([result("t1"), result("t1")])]),
    says: "messages.2: each tool_use must have a single result. Found multiple `tool_result` blocks with id: t1",
    good: answered,
  },
  {
    title: "one id for two calls",
    bad: ask([hi, assistant([call("t1"), call("t1")]), user([result("t1")])]),
    says: "messages.1.content.1: `tool_use` ids must be unique",
    good: answered,
  },
  {
    title: "an id used again later",
    bad: ask([hi, assistant([call("t1")]), user([result("t1")]), assistant([call("t1")]), user([result("t1")])]),
    says: "messages.3.content.0: `tool_use` ids must be unique",
    good: ask([hi, assistant([call("t1")]), user([result("t1")]), assistant([call("t2")]), user([result("t2")])]),
  },
  {
    title: "tool without schema",
    bad: ask([hi], { tools: [{ name: "look" }] }),
    says: "tools.0.custom.input_schema: Field required",
    good: ask([hi], { tools: [tool("look")] }),
  },
  {
    title: "tool name with a dot",
    bad: ask([hi], { tools: [tool("fs.read")] }),
    says: "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    good: ask([hi], { tools: [tool("fs_read")] }),
  },
  {
    title: "two tools of one name",
    bad: ask([hi], { tools: [tool("look"), tool("look")] }),
    says: "tools: Tool names must be unique.",
    good: ask([hi], { tools: [tool("look")] }),
  },
  {
    title: "a chosen tool that is not there",
    bad: ask([hi], { tools: [tool("look")], tool_choice: { type: "tool", name: "see" } }),
    says: "tool_choice: Tool 'see' not found in provided tools",
    good: ask([hi], { tools: [tool("look")], tool_choice: { type: "tool", name: "look" } }),
  },
  {
    title: "thinking budget not below max_tokens",
    bad: ask([hi], { max_tokens: 1024, thinking: { type: "enabled", budget_tokens: 1024 } }),
    says: "`max_tokens` must be greater than `thinking.budget_tokens`.",
    good: ask([hi], { max_tokens: 1025, thinking: { type: "enabled", budget_tokens: 1024 } }),
  },
  {
    title: "thinking budget under 1024",
    bad: ask([hi], { thinking: { type: "enabled", budget_tokens: 10 } }),
    says: "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    good: ask([hi], { thinking: { type: "adaptive" } }),
  },
  {
    title: "an unknown kind of thinking",
    bad: ask([hi], { thinking: { type: "on" } }),
    says: "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'",
    good: ask([hi], { thinking: { type: "adaptive" } }),
  },
  {
    title: "binding controls without their beta",
    bad: ask([hi], { thinking: { type: "adaptive", block_binding: {} } }),
    says: "thinking.adaptive.block_binding: Extra inputs are not permitted",
    good: ask([hi], { thinking: { type: "adaptive", block_binding: {} } }),
    goodHeaders: { "anthropic-beta": "thinking-binding-controls-2026-08-01" },
  },
  {
    title: "a signature nobody issued",
    bad: ask([hi, assistant([{ type: "thinking", thinking: "Hm", signature: "abc" }, text("Yes")]), hi]),
    says: "messages.1.content.0: Invalid `signature` in `thinking` block",
    good: ask([hi, assistant("Yes"), hi]),
  },
  {
    title: "redacted thinking nobody issued",
    bad: ask([hi, assistant([{ type: "redacted_thinking", data: "abc" }, text("Yes")]), hi]),
    says: "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
    good: ask([hi, assistant("Yes"), hi]),
  },
  {
    title: "thinking without signature",
    bad: ask([hi, assistant([{ type: "thinking", thinking: "Hm" }]), hi]),
    says: "messages.1.content.0.thinking.signature: Field required",
    good: ask([hi, assistant("Yes"), hi]),
  },
  {
    title: "a tool loop that does not begin with thinking",
    bad: { ...answered, max_tokens: 2000, thinking: { type: "enabled", budget_tokens: 1024 } },
    says: "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.",
    good: answered,
  },
];
