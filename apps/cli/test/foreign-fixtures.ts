/** A short session as another program keeps it, written by hand after its real files. */
export interface ForeignFixture {
  readonly format: string;
  /** Below the user's home, where the program keeps it. */
  readonly path: string;
  /** The file as it grows: each text begins with the one before, or takes its place where the program writes it whole. */
  readonly stages: readonly string[];
  /** Whether sessions can be exported in the format. */
  readonly isWritten: boolean;
}

const id = "5e551011-0000-4000-8000-000000000001";
const at = (second: number): string => new Date(Date.UTC(2026, 4, 7, 18, 0, second)).toISOString();

function jsonLines(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join("");
}

/** The file after its third line from the end, and whole. */
function grown(values: readonly object[]): readonly string[] {
  return [jsonLines(values.slice(0, -3)), jsonLines(values)];
}

const uuid = (digit: number): string => `00000000-0000-4000-8000-00000000000${digit}`;

function claudeLine(digit: number, parent: number | null, fields: object): object {
  const place = { parentUuid: parent === null ? null : uuid(parent), isSidechain: false, sessionId: id };
  return { ...place, cwd: "/home/u/project", version: "2.1.132", ...fields, uuid: uuid(digit), timestamp: at(digit) };
}

function claudeReply(digit: number, parent: number, block: object): object {
  const usage = { input_tokens: 3, cache_read_input_tokens: 7, output_tokens: 20 };
  const message = {
    id: `msg_${digit}`,
    type: "message",
    role: "assistant",
    model: "claude-opus-4-7",
    content: [block],
  };
  return claudeLine(digit, parent, { type: "assistant", message: { ...message, usage, stop_reason: null } });
}

const claudeCode: readonly object[] = [
  claudeLine(1, null, { type: "user", message: { role: "user", content: "What is in a.txt?" } }),
  claudeReply(2, 1, { type: "tool_use", id: "call_1", name: "Read", input: { file_path: "a.txt" } }),
  claudeLine(3, 2, {
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "hello" }] },
    toolUseResult: { file: { content: "hello" } },
  }),
  claudeReply(4, 3, { type: "text", text: "It says hello." }),
  { type: "novelty", of: ["nobody", null] },
  { type: "ai-title", aiTitle: "A file", sessionId: id },
];

function codexLine(second: number, type: string, payload: object): object {
  return { timestamp: at(second), type, payload };
}

const codex: readonly object[] = [
  codexLine(0, "session_meta", { id, cwd: "/home/u/project", cli_version: "0.128.0", model_provider: "openai" }),
  codexLine(1, "turn_context", { cwd: "/home/u/project", model: "gpt-5.1-codex", effort: "low" }),
  codexLine(2, "response_item", {
    type: "message",
    role: "user",
    content: [{ type: "input_text", text: "What is in a.txt?" }],
  }),
  codexLine(3, "event_msg", { type: "user_message", message: "What is in a.txt?" }),
  codexLine(4, "response_item", {
    type: "function_call",
    name: "read",
    arguments: '{"path": "a.txt"}',
    call_id: "call_1",
  }),
  codexLine(5, "response_item", { type: "function_call_output", call_id: "call_1", output: "hello" }),
  codexLine(6, "response_item", {
    type: "message",
    role: "assistant",
    content: [{ type: "output_text", text: "It says hello." }],
  }),
  codexLine(7, "novelty", { of: ["nobody", null] }),
];

function geminiReply(second: number, fields: object): object {
  const tokens = { input: 10, output: 20, cached: 7, thoughts: 0, tool: 0, total: 30 };
  return {
    id: uuid(second),
    timestamp: at(second),
    type: "gemini",
    thoughts: [],
    tokens,
    model: "gemini-3-pro",
    ...fields,
  };
}

const geminiCall = {
  id: "call_1",
  name: "read_file",
  args: { file_path: "a.txt" },
  result: [{ functionResponse: { id: "call_1", name: "read_file", response: { output: "hello" } } }],
  status: "success",
  timestamp: at(3),
};

const gemini: readonly object[] = [
  { sessionId: id, projectHash: "743e79", startTime: at(0), lastUpdated: at(0), kind: "main" },
  { id: uuid(1), timestamp: at(1), type: "user", content: [{ text: "What is in a.txt?" }] },
  geminiReply(2, { content: "" }),
  { $set: { lastUpdated: at(2) } },
  geminiReply(2, { content: "", toolCalls: [geminiCall] }),
  geminiReply(4, { content: "It says hello." }),
  { novelty: 1, of: ["nobody", null] },
];

function qwenLine(digit: number, type: string, fields: object): object {
  const place = { parentUuid: digit === 1 ? null : uuid(digit - 1), sessionId: id, cwd: "/home/u/project" };
  return { uuid: uuid(digit), ...place, timestamp: at(digit), type, version: "0.24.4", ...fields };
}

const qwenCode: readonly object[] = [
  qwenLine(1, "user", { message: { role: "user", parts: [{ text: "What is in a.txt?" }] } }),
  qwenLine(2, "assistant", {
    model: "qwen3-coder",
    message: { role: "model", parts: [{ functionCall: { id: "call_1", name: "read", args: { path: "a.txt" } } }] },
  }),
  qwenLine(3, "tool_result", {
    message: {
      role: "user",
      parts: [{ functionResponse: { id: "call_1", name: "read", response: { output: "hello" } } }],
    },
  }),
  qwenLine(4, "assistant", {
    model: "qwen3-coder",
    message: { role: "model", parts: [{ text: "It says hello." }] },
  }),
  { type: "novelty", of: ["nobody", null] },
  qwenLine(5, "system", { subtype: "custom_title", systemPayload: { customTitle: "A file" } }),
];

const kimi = (second: number, type: string, payload: object): object => ({
  timestamp: Date.parse(at(second)) / 1000,
  message: { type, payload },
});
const kimiStep = (second: number, n: number): object => kimi(second, "StepBegin", { n });

const kimiCli: readonly object[] = [
  { type: "metadata", protocol_version: "1.9" },
  kimi(1, "TurnBegin", { user_input: "What is in a.txt?" }),
  kimiStep(1, 1),
  kimi(2, "ToolCall", { type: "function", id: "call_1", function: { name: "read", arguments: '{"path":"a.txt"}' } }),
  kimi(3, "ToolResult", {
    tool_call_id: "call_1",
    return_value: { is_error: false, output: "hello", message: "", display: [] },
  }),
  kimiStep(3, 2),
  kimi(4, "ContentPart", { type: "text", text: "It says hello." }),
  { type: "novelty", of: ["nobody", null] },
  kimi(5, "TurnEnd", {}),
];

/** A list as it is written anew each time. */
function rewritten(values: readonly object[]): readonly string[] {
  return [values.slice(0, -2), values].map((list) => `${JSON.stringify(list, null, 2)}\n`);
}

const openAi: readonly object[] = [
  { role: "user", content: "What is in a.txt?" },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call_1", type: "function", function: { name: "read", arguments: '{"path":"a.txt"}' } }],
  },
  { role: "tool", tool_call_id: "call_1", content: "hello" },
  { role: "assistant", content: "It says hello." },
  { novelty: 1, of: ["nobody", null] },
];

const anthropic: readonly object[] = [
  { role: "user", content: "What is in a.txt?" },
  { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "read", input: { path: "a.txt" } }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "hello" }] },
  { role: "assistant", content: "It says hello." },
  { novelty: 1, of: ["nobody", null] },
];

const shareGpt = {
  conversations: [
    { from: "human", value: "What is in a.txt?" },
    { from: "function_call", value: '{"name":"read","arguments":{"path":"a.txt"}}' },
    { from: "observation", value: "hello" },
    { from: "gpt", value: "It says hello." },
  ],
};

const opencodeInfo = { id: "ses_1", directory: "/home/u/project", title: "A file" };

const opencode: readonly object[] = [
  { info: { id: "msg_1", role: "user", time: { created: 1 } }, parts: [{ type: "text", text: "What is in a.txt?" }] },
  {
    info: { id: "msg_2", role: "assistant", time: { created: 2, completed: 3 }, modelID: "m", providerID: "p" },
    parts: [
      {
        type: "tool",
        tool: "read",
        callID: "call_1",
        state: { status: "completed", input: { path: "a.txt" }, output: "hello" },
      },
    ],
  },
  {
    info: { id: "msg_3", role: "assistant", time: { created: 3, completed: 4 }, modelID: "m", providerID: "p" },
    parts: [{ type: "text", text: "It says hello." }],
  },
  { novelty: 1, of: ["nobody", null] },
];

const agentItems: readonly object[] = [
  { type: "message", role: "user", content: "What is in a.txt?" },
  { type: "function_call", callId: "call_1", name: "read", arguments: '{"path":"a.txt"}', status: "completed" },
  {
    type: "function_call_result",
    callId: "call_1",
    name: "read",
    status: "completed",
    output: { type: "text", text: "hello" },
  },
  {
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "It says hello." }],
  },
  { novelty: 1, of: ["nobody", null] },
];

const uiMessages: readonly object[] = [
  { id: "u1", role: "user", parts: [{ type: "text", text: "What is in a.txt?" }] },
  {
    id: "a1",
    role: "assistant",
    parts: [
      { type: "step-start" },
      { type: "tool-read", toolCallId: "call_1", state: "output-available", input: { path: "a.txt" }, output: "hello" },
      { type: "step-start" },
      { type: "text", text: "It says hello.", state: "done" },
    ],
  },
  { id: "n1", novelty: 1, of: ["nobody", null] },
];

const harmony: readonly string[] = [
  "<|start|>user<|message|>What is in a.txt?<|end|>",
  '<|start|>assistant to=functions.read<|channel|>commentary <|constrain|>json<|message|>{"path":"a.txt"}<|call|>',
  "<|start|>functions.read to=assistant<|channel|>commentary<|message|>hello<|end|>",
  "<|start|>assistant<|channel|>final<|message|>It says hello.<|end|>\n",
];

const ampThread = {
  v: 42,
  id: `T-${id}`,
  created: Date.parse(at(0)),
  title: "A file",
  env: { initial: { trees: [{ displayName: "project", uri: "file:///home/u/project" }] } },
};

const ampUsage = (second: number): object => ({
  usage: { model: "claude-opus-4-7", inputTokens: 3, cacheReadInputTokens: 7, outputTokens: 20, timestamp: at(second) },
});

const ampMessages: readonly object[] = [
  {
    role: "user",
    messageId: 0,
    content: [{ type: "text", text: "What is in a.txt?" }],
    meta: { sentAt: Date.parse(at(1)) },
  },
  {
    role: "assistant",
    messageId: 1,
    content: [{ type: "tool_use", complete: true, id: "call_1", name: "Read", input: { path: "a.txt" } }],
    ...ampUsage(2),
  },
  {
    role: "user",
    messageId: 2,
    content: [{ type: "tool_result", toolUseID: "call_1", run: { status: "done", result: "hello" } }],
  },
  { role: "assistant", messageId: 3, content: [{ type: "text", text: "It says hello." }], ...ampUsage(4) },
];

const droidLine = (second: number, role: string, content: readonly object[], more: object = {}): object => ({
  type: "message",
  id: `m${second}`,
  timestamp: at(second),
  message: { role, content, ...more },
});

const droidModel = { modelId: "claude-opus-4-7" };

const droid: readonly object[] = [
  { type: "session_start", id, title: "A file", owner: "u", version: 2, cwd: "/home/u/project" },
  droidLine(1, "user", [{ type: "text", text: "What is in a.txt?" }]),
  droidLine(
    2,
    "assistant",
    [{ type: "tool_use", id: "call_1", name: "Read", input: { file_path: "a.txt" } }],
    droidModel,
  ),
  droidLine(3, "user", [{ type: "tool_result", tool_use_id: "call_1", content: "hello" }]),
  droidLine(4, "assistant", [{ type: "text", text: "It says hello." }], droidModel),
];

export const foreignFixtures: readonly ForeignFixture[] = [
  {
    format: "claude-code",
    path: `.claude/projects/-home-u-project/${id}.jsonl`,
    stages: grown(claudeCode),
    isWritten: true,
  },
  {
    format: "codex",
    path: `.codex/sessions/2026/05/07/rollout-2026-05-07T18-00-00-${id}.jsonl`,
    stages: grown(codex),
    isWritten: true,
  },
  {
    format: "gemini",
    path: `.gemini/tmp/project/chats/session-2026-05-07T18-00-${id.slice(0, 8)}.jsonl`,
    stages: grown(gemini),
    isWritten: true,
  },
  {
    format: "qwen-code",
    path: `.qwen/projects/-home-u-project/chats/${id}.jsonl`,
    stages: grown(qwenCode),
    isWritten: false,
  },
  {
    format: "kimi-cli",
    path: `.kimi/sessions/0123456789abcdef0123456789abcdef/${id}/wire.jsonl`,
    stages: grown(kimiCli),
    isWritten: false,
  },
  {
    format: "amp",
    path: `.local/share/amp/threads/T-${id}.json`,
    stages: [ampMessages.slice(0, 2), ampMessages].map((messages) =>
      JSON.stringify({ ...ampThread, messages }, null, 2),
    ),
    isWritten: false,
  },
  { format: "droid", path: `.factory/sessions/-home-u-project/${id}.jsonl`, stages: grown(droid), isWritten: false },
  { format: "openai", path: "chats/one.json", stages: rewritten(openAi), isWritten: true },
  { format: "ai-sdk", path: "chats/two.json", stages: rewritten(uiMessages), isWritten: true },
  {
    format: "opencode",
    path: "chats/five.json",
    stages: [opencode.slice(0, 2), opencode].map((messages) =>
      JSON.stringify({ info: opencodeInfo, messages }, null, 2),
    ),
    isWritten: true,
  },
  { format: "openai-agents", path: "chats/six.json", stages: rewritten(agentItems), isWritten: true },
  { format: "anthropic", path: "chats/three.json", stages: rewritten(anthropic), isWritten: true },
  { format: "sharegpt", path: "chats/four.json", stages: [JSON.stringify(shareGpt, null, 2)], isWritten: true },
  {
    format: "harmony",
    path: "chats/seven.txt",
    stages: [harmony.slice(0, 3).join(""), harmony.join("")],
    isWritten: true,
  },
];
