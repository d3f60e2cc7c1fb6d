import { storedRecords, text, type RecordSketch } from "./stored-records.ts";
import type { StoredRecord } from "@throughline/core";

type Fields = Readonly<Record<string, unknown>>;

const said = (message: Fields): RecordSketch => ({ type: "message", message });
const user = (content: unknown): RecordSketch => said({ role: "user", content });
const reply = (content: unknown, more: Fields = {}): RecordSketch => said({ role: "assistant", content, ...more });
const answer = (toolCallId: string, content: unknown, more: Fields = {}): RecordSketch =>
  said({ role: "toolResult", toolCallId, content, ...more });
const toolUse = (id: unknown, name = "read", input: unknown = { path: "a" }): Fields => ({
  type: "tool_use",
  id,
  name,
  input,
});
const toolResult = (id: unknown, content: unknown = "ok", more: Fields = {}): Fields => ({
  type: "tool_result",
  tool_use_id: id,
  content,
  ...more,
});
const png = "iVBORw0KGgo=";
const claude = { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" };
const gemini = { api: "google-generative-ai", provider: "google", model: "gemini-3-pro" };
const openai = { api: "openai-responses", provider: "openai", model: "gpt-5" };
/** As deep and as long as a plan that a model wrote into an argument. */
function deep(levels: number): Fields {
  return levels === 0 ? { text: "x".repeat(20_000) } : { level: levels, list: [null, { ...deep(levels - 1) }] };
}

/**
 * Conversations in the shapes of other programs, as an import that knows little of them would store them: what they call
 * their blocks stands in the content as it was.
 */
const sketches: Readonly<Record<string, readonly RecordSketch[]>> = {
  "Claude Code: one reply in several records, side chains between": [
    user("look at both"),
    reply([{ type: "thinking", thinking: "two files", signature: "c2ln" }], { ...claude, responseId: "msg_1" }),
    reply([text("Reading.")], { ...claude, responseId: "msg_1" }),
    reply([toolUse("toolu_1")], { ...claude, responseId: "msg_1" }),
    { ...user("side chain: find the file"), isSidechain: true },
    reply([toolUse("toolu_2")], { ...claude, responseId: "msg_1" }),
    { ...reply([toolUse("toolu_9")], { ...claude, responseId: "msg_9" }), isSidechain: true },
    user([toolResult("toolu_2", [text("b")])]),
    { ...user([toolResult("toolu_9", "side")]), isSidechain: true },
    user([toolResult("toolu_1", [{ type: "image", source: { type: "base64", media_type: "image/png", data: png } }])]),
    reply([text("Both read.")], { ...claude, responseId: "msg_2" }),
    user([{ type: "text", text: "[Request interrupted by user]" }]),
    reply([toolUse("toolu_3")], { ...claude, responseId: "msg_3" }),
    user([toolResult("toolu_3", "Error: denied", { is_error: true }), text("do not")]),
    { type: "summary", summary: "They read two files.", leafUuid: "r11" },
    reply("(no content)", { ...claude, model: "<synthetic>" }),
  ],
  "Codex: items of the Responses API": [
    user([{ type: "input_text", text: "list the files" }]),
    said({ type: "reasoning", id: "rs_1", summary: [], encrypted_content: "ZQ==" }),
    said({ type: "function_call", name: "shell", arguments: '{"cmd":"ls"}', call_id: "call_1" }),
    said({ type: "function_call_output", call_id: "call_1", output: "a.ts" }),
    reply([{ type: "output_text", text: "One file." }], openai),
    user([{ type: "input_image", image_url: `data:image/png;base64,${png}` }]),
    reply([{ type: "reasoning", id: "rs_2", summary: [], encrypted_content: "ZQ==" }], openai),
    reply([{ type: "function_call", name: "shell", arguments: "{not json", call_id: "call_2", id: "fc_2" }], openai),
    user([{ type: "function_call_output", call_id: "call_2", output: "b.ts" }]),
    reply([{ type: "refusal", refusal: "I will not." }], openai),
    reply([{ type: "local_shell_call", call_id: "call_3", action: { command: ["ls"] } }], openai),
    said({ role: "developer", content: [{ type: "input_text", text: "Stay in the folder." }] }),
    user("go on"),
  ],
  "LangGraph: tool_calls beside the content": [
    said({ role: "system", content: "You help." }),
    user("weather?"),
    reply("", { tool_calls: [{ id: "call_1", name: "weather", args: { city: "Wien" }, type: "tool_call" }] }),
    said({ role: "tool", content: "22", tool_call_id: "call_1", name: "weather", status: "success" }),
    reply(null, { tool_calls: [{ id: "call_2", function: { name: "weather", arguments: "{}" }, type: "function" }] }),
    said({ role: "tool", content: null, tool_call_id: "call_2" }),
    reply([{ type: "tool_call", id: "call_3", name: "weather", args: {} }, text("Warm.")]),
    reply([
      { type: "text", text: "Warm.", index: 0 },
      { type: "non_standard", value: {} },
    ]),
    said({ role: "remove", content: "", id: "m1" }),
    user([{ type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }]),
  ],
  "Vercel AI SDK: parts of UI messages": [
    user([{ type: "text", text: "hi", state: "done" }]),
    reply([
      { type: "step-start" },
      { type: "reasoning", text: "thinking", state: "done" },
      { type: "tool-weather", toolCallId: "c1", state: "output-available", input: { city: "a" }, output: { t: 1 } },
      { type: "dynamic-tool", toolName: "x", toolCallId: "c2", state: "output-error", errorText: "no", input: {} },
      { type: "source-url", sourceId: "s", url: "https://example.org" },
      { type: "file", mediaType: "image/png", url: `data:image/png;base64,${png}` },
      { type: "data-weather", data: { t: 1 } },
      { type: "text", text: "Warm.", state: "done" },
    ]),
    reply([{ type: "tool-call", toolCallId: "c3", toolName: "weather", input: {} }]),
    said({
      role: "tool",
      content: [{ type: "tool-result", toolCallId: "c3", toolName: "weather", output: { type: "json", value: 1 } }],
    }),
    reply([]),
    user([]),
    reply([{ type: "tool-approval-request", approvalId: "1", toolCallId: "c4" }]),
  ],
  "OpenAI Agents SDK: items": [
    user("go"),
    reply([{ type: "output_text", text: "Handing over.", annotations: [] }], { ...openai, status: "completed" }),
    said({ type: "function_call", callId: "c1", name: "transfer_to_b", arguments: "{}", status: "completed" }),
    said({ type: "function_call_result", callId: "c1", name: "transfer_to_b", output: { type: "text", text: "ok" } }),
    reply([{ type: "toolCall", id: "call_1|fc_1", name: "look", arguments: {} }], openai),
    answer("call_1", "found it"),
    reply([{ type: "toolCall", id: "call_2|fc_2", name: "look", arguments: {} }], openai),
    answer("call_2|fc_2", [{ type: "input_text", text: "found" }]),
    said({ type: "hosted_tool_call", name: "web_search_call", id: "ws_1", status: "completed" }),
    said({ role: "assistant", type: "message", content: [{ type: "audio", audio: "AA==", transcript: "yes" }] }),
    user("thanks"),
  ],
  "Gemini: calls without ids": [
    user([{ text: "look twice" }]),
    reply([{ functionCall: { name: "look", args: {} } }], gemini),
    user([{ functionResponse: { name: "look", response: {} } }]),
    reply([{ type: "functionCall", name: "look", arguments: { at: 1 } }], gemini),
    answer("", "first"),
    reply(
      [
        { type: "toolCall", id: "", name: "look", arguments: { at: 1 }, thoughtSignature: "c2ln" },
        { type: "toolCall", id: "", name: "look", arguments: { at: 2 } },
      ],
      gemini,
    ),
    answer("", "one", { toolName: "look" }),
    answer("", "two", { toolName: "look" }),
    reply([{ type: "toolCall", id: "", name: "look", arguments: { at: 1 } }], gemini),
    user("and?"),
    answer("", "late"),
    reply([{ type: "thinking", thinking: "so", thinkingSignature: "c2ln" }, text("Done.")], gemini),
  ],
  "Mistral: ids of nine characters": [
    user("go"),
    reply(
      [
        { type: "toolCall", id: "abcDEF123", name: "look", arguments: {} },
        { type: "toolCall", id: "abcDEF12", name: "look", arguments: {} },
      ],
      { api: "mistral-conversations", provider: "mistral", model: "magistral-medium" },
    ),
    answer("abcDEF12", "two"),
    answer("abcDEF123", "one"),
    user("go on"),
    reply([{ type: "thinking", thinking: [{ type: "text", text: "as a list" }] }]),
    reply([
      { type: "thinking", thinking: "as text" },
      { type: "toolCall", id: "abcDEF123", name: "look", arguments: {} },
    ]),
    reply([text("never answered")]),
  ],
  "Bedrock: toolUse and toolResult": [
    user([{ text: "go" }]),
    reply([{ text: "Yes." }, { toolUse: { toolUseId: "tooluse_1", name: "look", input: {} } }]),
    user([{ toolResult: { toolUseId: "tooluse_1", status: "success", content: [{ json: { a: 1 } }] } }]),
    reply([{ type: "toolUse", id: "tooluse_2", name: "look", input: { deep: deep(30) } }]),
    answer(
      "tooluse_2",
      [
        { type: "json", json: {} },
        { type: "video", source: {} },
      ],
      { isError: true },
    ),
    reply([{ type: "reasoningContent", reasoningText: { text: "t", signature: "c2ln" } }, text("Done.")]),
    user([{ type: "cachePoint" }, { type: "guardContent", text: "x" }]),
  ],
  "results before their calls, ids used again": [
    answer("t1", "before anything"),
    user("go"),
    answer("t1", "before its call"),
    reply([toolUse("t1")], claude),
    answer("t1", "its own"),
    reply([toolUse("t1")], claude),
    user("go on"),
    reply([toolUse("t1"), toolUse("t1")], claude),
    answer("t1", "one"),
    answer("t1", "two"),
    answer("t1", "three"),
    reply([toolUse("t1", "write")], claude),
    reply([toolUse("t1", "write")], { ...claude, fragment: true }),
    answer("t1", "again", { toolName: "write" }),
    answer("t1", [], { toolName: "write", isError: true }),
    reply([text("end")], claude),
  ],
  "blocks of newer APIs": [
    user([{ type: "container_upload", file_id: "file_1" }, text("analyse")]),
    reply(
      [
        { type: "server_tool_use", id: "srv_1", name: "code_execution", input: {} },
        {
          type: "code_execution_tool_result",
          tool_use_id: "srv_1",
          content: { type: "code_execution_result", stdout: "" },
        },
        { type: "mcp_tool_use", id: "mcp_1", name: "look", server_name: "s", input: {} },
        { type: "mcp_tool_result", tool_use_id: "mcp_1", is_error: false, content: [text("x")] },
        { type: "compaction", content: "So far.", signature: "c2ln" },
        text("Done."),
      ],
      claude,
    ),
    user("more"),
    reply([{ type: "server_tool_use", id: "srv_2", name: "web_search", input: {} }], {
      ...claude,
      stopReason: "pause_turn",
    }),
    reply([{ type: "web_search_tool_result", tool_use_id: "srv_2", content: [] }, text("Found.")], claude),
    said({ role: "system", content: [{ type: "text", text: "New rules.", cache_control: { type: "ephemeral" } }] }),
    user([
      { type: "search_result", source: "s", title: "t", content: [text("x")] },
      { type: "fallback", model: "x" },
    ]),
    reply([{ type: "redacted_thinking", data: "b3BhcXVl" }, toolUse("toolu_1")], claude),
    answer("toolu_1", [
      { type: "tool_reference", tool_name: "x" },
      { type: "image", source: { type: "file", file_id: "f" } },
    ]),
    reply([{ type: "tool_use", id: "toolu_2", name: "a".repeat(300), input: "not an object" }, toolUse(7)], claude),
    user([toolResult("toolu_2"), toolResult(7)]),
  ],
  "nothing where something should be": [
    user(null),
    user(""),
    reply(null, claude),
    reply([], claude),
    reply([text("")], claude),
    reply([null, 7, "text", {}], claude),
    user([{ type: "text" }, { type: "text", text: null }]),
    reply([toolUse("t1")], claude),
    answer("t1", null),
    reply([toolUse("t2")], claude),
    answer("t2", [{ type: "text", text: " " }]),
    said({ role: "toolResult", content: "no id" }),
    said({}),
    { type: "message" },
    user([{ type: "image", data: "", mimeType: "image/png" }]),
    user([text("\u0000 a \u{1f600}\ud83d")]),
  ],
};

export const otherPrograms: readonly (readonly [name: string, records: readonly StoredRecord[]])[] = Object.entries(
  sketches,
).map(([name, rows]) => [name, storedRecords(rows)]);
