import type { ForeignFormatName } from "../src/names.ts";
import { jsonLines } from "./read-units.ts";
import { amp } from "./amp/sample.ts";
import { droid } from "./droid/sample.ts";
import { kimiCli } from "./kimi-cli/sample.ts";
import { qwenCode } from "./qwen-code/sample.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A small session of a format, for tests that change it: values of lines, or a document. */
export interface SampleText {
  readonly path: string;
  /** Of a text the lines as texts; the values of the lines; of a document the only one. */
  readonly values: readonly unknown[];
}

const at = "2026-06-30T10:00:00.000Z";
const usage: Fields = { input_tokens: 3, cache_read_input_tokens: 7, output_tokens: 20 };
const lines = (...values: readonly unknown[]): SampleText => ({ path: "/p/session.jsonl", values });
const document = (value: unknown, path: string = "/p/session.json"): SampleText => ({ path, values: [value] });

function claudeLine(id: number, fields: Fields): Fields {
  const place = { parentUuid: id === 1 ? null : `u${id - 1}`, isSidechain: false, sessionId: "s1", cwd: "/w" };
  return { ...place, uuid: `u${id}`, timestamp: at, ...fields };
}
const claudeReply = (id: number, block: Fields): Fields =>
  claudeLine(id, {
    type: "assistant",
    message: { id: "m1", role: "assistant", model: "claude", content: [block], usage },
  });
const codexLine = (type: string, payload: Fields): Fields => ({ timestamp: at, type, payload });
const codexItem = (payload: Fields): Fields => codexLine("response_item", payload);
const copilot = (type: string, id: string, data: Fields): Fields => ({ type, data, id, parentId: null, timestamp: at });
const tokens: Fields = { input: 10, output: 5, reasoning: 3, cache: { read: 20, write: 2 } };
const chat: readonly Fields[] = [
  { role: "user", content: [{ type: "text", text: "Hi" }] },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "c1", content: "ok" },
  { role: "assistant", content: "Done." },
];
const blocks: readonly Fields[] = [
  { role: "user", content: "Hi" },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Hm.", signature: "c2ln" },
      { type: "tool_use", id: "t1", name: "f", input: { a: 1 } },
    ],
  },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "ok" }] }] },
];
const langchain = (name: string, kwargs: Fields): Fields => ({
  lc: 1,
  type: "constructor",
  id: ["langchain_core", "messages", name],
  kwargs,
});

/** One for each format, with a call and its result. */
export const sampleTexts: Readonly<Record<ForeignFormatName, SampleText>> = {
  "claude-code": lines(
    claudeLine(1, { type: "user", message: { role: "user", content: "Hi" } }),
    claudeReply(2, { type: "thinking", thinking: "", signature: "c2ln" }),
    claudeReply(3, { type: "tool_use", id: "t1", name: "Read", input: { file_path: "a" } }),
    claudeLine(4, {
      type: "user",
      message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "ok" }] },
    }),
    claudeLine(5, {
      type: "system",
      subtype: "compact_boundary",
      parentUuid: null,
      logicalParentUuid: "u4",
      compactMetadata: { trigger: "auto", preTokens: 100, preservedMessages: { uuids: ["u4"] } },
    }),
    claudeLine(6, { type: "user", isCompactSummary: true, message: { role: "user", content: "In short." } }),
    { type: "summary", summary: "Talk", leafUuid: "u4" },
  ),
  codex: lines(
    codexLine("session_meta", {
      id: "019e03b2-11a2-7320-9098-5d831813e66c",
      cwd: "/w",
      source: { subagent: { thread_spawn: { parent_thread_id: "p1" } } },
    }),
    codexLine("turn_context", { model: "gpt-5", effort: "low", cwd: "/w" }),
    codexLine("event_msg", { type: "user_message", message: "Hi" }),
    codexItem({ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }),
    codexItem({ type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "gAAA" }),
    codexItem({ type: "function_call", name: "shell", arguments: "{}", call_id: "c1" }),
    codexItem({ type: "function_call_output", call_id: "c1", output: "ok" }),
    codexLine("event_msg", {
      type: "token_count",
      info: {
        total_token_usage: { input_tokens: 9, cached_input_tokens: 2, output_tokens: 3, reasoning_output_tokens: 1 },
      },
    }),
    codexLine("compacted", {
      message: "Short.",
      replacement_history: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] }],
    }),
    codexLine("event_msg", { type: "thread_rolled_back", num_turns: 1 }),
    codexItem({ type: "message", role: "assistant", content: [{ type: "output_text", text: "Done." }] }),
  ),
  gemini: lines(
    { sessionId: "g1", projectHash: "743e", startTime: at, lastUpdated: at, kind: "main" },
    { id: "m1", timestamp: at, type: "user", content: [{ text: "Hi" }] },
    {
      id: "m2",
      timestamp: at,
      type: "gemini",
      content: "I look.",
      model: "gemini-3",
      thoughts: [{ subject: "A", description: "B" }],
      tokens: { input: 9, output: 2, cached: 1, thoughts: 1, tool: 1, total: 12 },
      toolCalls: [
        {
          id: "c1",
          name: "read",
          args: {},
          status: "success",
          result: [{ functionResponse: { id: "c1", name: "read", response: { output: "ok" } } }],
        },
      ],
    },
    { $set: { summary: "Talk", messages: [{ id: "m3", timestamp: at, type: "user", content: "Again" }] } },
    { $rewindTo: "m3" },
    { id: "m4", timestamp: at, type: "user", content: "More" },
  ),
  "qwen-code": lines(...qwenCode),
  "kimi-cli": lines(...kimiCli),
  amp: document(amp),
  droid: lines(...droid),
  openai: document({ model: "gpt-5", messages: chat, tools: [] }),
  "ai-sdk": document([
    { id: "1", role: "user", parts: [{ type: "text", text: "Hi" }] },
    {
      id: "2",
      role: "assistant",
      metadata: { model: "m" },
      parts: [
        { type: "step-start" },
        { type: "reasoning", text: "Hm." },
        { type: "tool-f", toolCallId: "c1", state: "output-available", input: { a: 1 }, output: { b: 2 } },
        { type: "file", mediaType: "image/png", url: "data:image/png;base64,aGk=" },
      ],
    },
  ]),
  opencode: document({
    info: {
      id: "ses_1",
      directory: "/w",
      title: "T",
      revert: { messageID: "msg_9", partID: "p" },
      time: { created: 1 },
    },
    messages: [
      {
        info: { id: "msg_1", role: "user", time: { created: 1_778_178_631_267 } },
        parts: [{ id: "p1", type: "text", text: "Hi" }],
      },
      {
        info: { id: "msg_2", role: "assistant", modelID: "m", providerID: "anthropic", tokens, time: { created: 1 } },
        parts: [
          {
            type: "tool",
            tool: "read",
            callID: "c1",
            state: { status: "completed", input: {}, output: "ok", time: { start: 1 } },
          },
        ],
      },
      {
        info: { id: "msg_3", role: "user", time: { created: 1 } },
        parts: [{ type: "compaction", auto: true, tail_start_id: "msg_2" }],
      },
      {
        info: { id: "msg_4", role: "assistant", summary: true, tokens, time: { created: 1 } },
        parts: [{ type: "text", text: "In short." }],
      },
    ],
  }),
  "openai-agents": document([
    { type: "message", role: "user", content: "Hi" },
    {
      type: "reasoning",
      id: "rs_1",
      content: [{ type: "input_text", text: "Hm." }],
      providerData: { encrypted_content: "ZW5j" },
    },
    { type: "function_call", id: "fc_1", callId: "c1", name: "f", arguments: "{}", status: "completed" },
    {
      type: "function_call_result",
      name: "f",
      callId: "c1",
      status: "completed",
      output: { type: "text", text: "ok" },
    },
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "Done." }],
    },
  ]),
  langgraph: lines(
    {
      ns: "",
      id: "1",
      parent: null,
      ts: at,
      messages: [langchain("HumanMessage", { content: "Hi" })],
      channels: { a: 1 },
      metadata: {},
    },
    {
      ns: "",
      id: "2",
      parent: "1",
      ts: at,
      messages: [
        langchain("AIMessage", {
          content: "",
          tool_calls: [{ id: "c1", name: "f", args: {} }],
          usage_metadata: { input_tokens: 3, output_tokens: 1, input_token_details: { cache_read: 1 } },
        }),
      ],
    },
    {
      ns: "",
      id: "3",
      parent: "2",
      ts: at,
      replaces: true,
      messages: [langchain("ToolMessage", { content: "ok", tool_call_id: "c1" })],
    },
  ),
  "copilot-cli": lines(
    copilot("session.start", "e1", { sessionId: "s1", copilotVersion: "1", context: { cwd: "/w" } }),
    copilot("user.message", "e2", { content: "Hi" }),
    copilot("assistant.message", "e3", {
      messageId: "m",
      content: "I look.",
      reasoningText: "Hm.",
      toolRequests: [{ toolCallId: "c1", name: "f", arguments: {} }],
    }),
    copilot("tool.execution_complete", "e4", { toolCallId: "c1", success: true, result: { content: "ok" } }),
    copilot("session.shutdown", "e5", {
      modelMetrics: { m: { usage: { inputTokens: 3, outputTokens: 1, cacheReadTokens: 1 } } },
    }),
  ),
  cline: document(
    [
      ...blocks.map((message) => ({
        ...message,
        ts: 1_790_000_000_000,
        condenseParent: "x",
        modelInfo: { modelId: "m", providerId: "p" },
      })),
      {
        role: "assistant",
        ts: 1,
        content: [
          { type: "tool-call", toolCallId: "c1", toolName: "f", input: {} },
          { type: "reasoning", text: "Hm." },
        ],
      },
      {
        role: "tool",
        ts: 1,
        content: [{ type: "tool-result", toolCallId: "c1", output: { type: "json", value: { a: 1 } } }],
      },
      { role: "user", ts: 1, content: "In short.", isSummary: true, condenseId: "x" },
    ],
    "/p/tasks/1/api_conversation_history.json",
  ),
  cursor: lines(
    {
      bubbleId: "b1",
      bubble: { type: 1, createdAt: at, text: "Hi", images: [{ data: "aGk=", mimeType: "image/png" }] },
    },
    { bubbleId: "b2", bubble: { type: 2, createdAt: at, thinking: { text: "Hm." }, modelInfo: { modelName: "m" } } },
    {
      bubbleId: "b3",
      bubble: {
        type: 2,
        createdAt: at,
        toolFormerData: { toolCallId: "t1", name: "f", params: "{}", result: "ok", status: "completed" },
      },
    },
    { bubbleId: "b4", unlisted: true, bubble: { type: 2, createdAt: at, text: "Aside" } },
  ),
  goose: lines(
    { working_dir: "/w", description: "T", message_count: 3 },
    {
      id: "1",
      role: "user",
      created: 1_790_000_000,
      content: [{ type: "text", text: "Hi" }],
      metadata: { agentVisible: true },
    },
    {
      role: "assistant",
      created: 1,
      content: [
        { type: "thinking", thinking: "Hm.", signature: "c2ln" },
        { type: "toolRequest", id: "c1", toolCall: { status: "success", value: { name: "f", arguments: { a: 1 } } } },
      ],
    },
    {
      role: "user",
      created: 1,
      content: [
        {
          type: "toolResponse",
          id: "c1",
          toolResult: { status: "success", value: { content: [{ type: "text", text: "ok" }], isError: false } },
        },
      ],
    },
  ),
  aider: {
    path: "/p/.aider.chat.history.md",
    values: [
      "# aider chat started at 2026-06-30 10:00:00",
      "> Model: gpt-5",
      "#### Hi",
      "#### there",
      "Hello.",
      "",
      "> Tokens: 5",
      "Done.",
    ],
  },
  anthropic: document({ model: "claude", system: "S", max_tokens: 5, messages: blocks }),
  sharegpt: document({
    id: "c1",
    conversations: [
      { from: "human", value: "Hi" },
      { from: "function_call", value: '{"name":"f","arguments":{}}' },
      { from: "observation", value: "ok" },
      { from: "gpt", value: "Done." },
    ],
  }),
  harmony: {
    path: "/p/session.harmony.txt",
    values: [
      "<|start|>developer<|message|># Instructions",
      "",
      "S<|end|>",
      "<|start|>user<|message|>Hi<|end|><|start|>assistant<|channel|>analysis<|message|>Hm.",
      "So.<|end|>",
      "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
      "<|start|>functions.f to=assistant<|channel|>commentary<|message|>ok<|end|>",
      "<|start|>assistant<|channel|>final<|message|>Done.",
    ],
  },
};

/** The text of a session of lines, or of a document. */
export function textOf({ path, values }: SampleText): string {
  if (isText(path)) return values.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
  return path.endsWith(".json") ? JSON.stringify(values[0]) : jsonLines(...values);
}

/** Whether a path is of a text instead of JSON. */
export function isText(path: string): boolean {
  return /\.(?:md|txt)$/.test(path);
}
