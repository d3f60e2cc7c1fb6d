import { describe, expect, it } from "vitest";
import { readReply } from "../../src/wire/read-reply.ts";
import type { WireApi } from "../../src/wire/wire-api.ts";

const events = (list: readonly unknown[], end = "\n"): string =>
  list.map((data) => `data: ${typeof data === "string" ? data : JSON.stringify(data)}${end}${end}`).join("");

const anthropic = [
  {
    type: "message_start",
    message: { id: "msg_1", role: "assistant", model: "m", content: [], usage: { input_tokens: 7, output_tokens: 1 } },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "ping" },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hé" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "llo" } },
  { type: "content_block_stop", index: 0 },
  { type: "a_new_event", of: 2027 },
  { type: "content_block_start", index: 1, content_block: { type: "tool_use", id: "t1", name: "read", input: {} } },
  { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"path":' } },
  { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '"a"}' } },
  { type: "content_block_stop", index: 1 },
  { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } },
  { type: "message_stop" },
];
const chat = [
  { id: "c1", model: "m", choices: [{ index: 0, delta: { role: "assistant", content: "" } }] },
  { id: "c1", model: "m", choices: [{ index: 0, delta: { content: "Héllo" } }] },
  {
    id: "c1",
    model: "m",
    choices: [
      {
        index: 0,
        delta: {
          tool_calls: [{ index: 0, id: "t1", type: "function", function: { name: "read", arguments: '{"pa' } }],
        },
      },
    ],
  },
  {
    id: "c1",
    model: "m",
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: 'th":"a"}' } }] } }],
  },
  { id: "c1", model: "m", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
  { id: "c1", model: "m", choices: [], usage: { prompt_tokens: 7, completion_tokens: 9 } },
  "[DONE]",
];
const output = [
  { type: "message", role: "assistant", content: [{ type: "output_text", text: "Héllo" }] },
  { type: "function_call", call_id: "t1", name: "read", arguments: '{"path":"a"}' },
];
const usage = { input_tokens: 7, output_tokens: 9 };
const responses = [
  { type: "response.created", response: { id: "r1", model: "m", status: "in_progress", output: [] } },
  { type: "response.output_text.delta", output_index: 0, delta: "Héllo" },
  { type: "response.output_item.done", output_index: 0, item: output[0] },
  { type: "response.output_item.done", output_index: 1, item: output[1] },
  { type: "response.completed", response: { id: "r1", model: "m", status: "completed", output, usage } },
];
const call = { function: { name: "read", arguments: { path: "a" } } };
const ollama = [
  { model: "m", message: { role: "assistant", content: "Hé" }, done: false },
  { model: "m", message: { role: "assistant", content: "llo" }, done: false },
  { model: "m", message: { role: "assistant", content: "", tool_calls: [call] }, done: false },
  { model: "m", message: { role: "assistant", content: "" }, done: true, prompt_eval_count: 7, eval_count: 9 },
];

const streams: readonly (readonly [WireApi, string, string])[] = [
  ["anthropic-messages", "text/event-stream; charset=utf-8", events(anthropic)],
  ["anthropic-messages", "text/event-stream", events(anthropic, "\r\n")],
  ["anthropic-messages", "text/event-stream", events(anthropic, "\r")],
  ["openai-completions", "text/event-stream", events(chat)],
  ["openai-responses", "text/event-stream", events(responses)],
  ["ollama", "application/x-ndjson", ollama.map((line) => `${JSON.stringify(line)}\n`).join("")],
];

function said(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  return content.map(({ type, text, name, arguments: given }: Record<string, unknown>) =>
    type === "text" ? text : [name, given],
  );
}

describe("streams", () => {
  it.each(streams)("of %s (%s) are one reply", (api, type, text) => {
    const { draft, isEnded, error } = readReply(api, type, text, "m");
    expect([isEnded, error]).toEqual([true, null]);
    expect(said(draft?.message.content)).toEqual(["Héllo", ["read", { path: "a" }]]);
    expect(draft?.message).toMatchObject({ stopReason: "toolUse", usage: { input: 7, output: 9 } });
  });

  it.each(streams)("of %s (%s) may break off anywhere", (api, type, text) => {
    for (let length = 0; length < text.length; length += 7) {
      const { draft, isEnded } = readReply(api, type, text.slice(0, length), "m");
      if (!isEnded) expect([undefined, "aborted"]).toContain(draft?.message.stopReason);
    }
  });

  it("keep events that nobody knows, and an error in place of the rest", () => {
    const known = readReply("anthropic-messages", "text/event-stream", events(anthropic), "m");
    expect(known.unknown).toEqual(['{"type":"a_new_event","of":2027}']);
    const failed = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const broken = readReply(
      "anthropic-messages",
      "text/event-stream",
      events([...anthropic.slice(0, 5), failed]),
      "m",
    );
    expect([broken.isEnded, broken.error]).toEqual([false, JSON.stringify(failed)]);
    expect(said(broken.draft?.message.content)).toEqual(["Héllo"]);
  });

  it("that are none give no reply", () => {
    for (const [api, type] of streams)
      for (const text of ["", "\0\0", "data: {\n\n", "data: 7\n\n", "{}", "null", "<html>", '{"type":"error"}'])
        expect([api, text, readReply(api, type, text, "m").draft]).toEqual([api, text, null]);
  });
});

describe("a compaction on demand", () => {
  it("is kept with what only the provider can read, also from a stream", () => {
    const delta = { type: "compaction_delta", content: "They said hello.", encrypted_content: "b3BhcXVl" };
    const stream = events([
      anthropic[0],
      { type: "content_block_start", index: 0, content_block: { type: "compaction", content: null } },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "compaction" }, usage: { output_tokens: 9 } },
      { type: "message_stop" },
    ]);
    const { draft, unknown } = readReply("anthropic-messages", "text/event-stream", stream, "m");
    expect(JSON.stringify(draft)).toContain('"encrypted_content":"b3BhcXVl"');
    expect(JSON.stringify(draft)).toContain('"content":"They said hello."');
    expect(unknown).toEqual([]);
  });
});
