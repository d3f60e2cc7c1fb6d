import { isRecordOfType, type SessionRecord } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import type { TargetName } from "../src/provider-mappings.ts";
import * as anthropic from "@throughline/history/anthropic";
import * as bedrock from "@throughline/history/bedrock";
import * as gemini from "@throughline/history/gemini";
import * as mistral from "@throughline/history/mistral";
import * as ollama from "@throughline/history/ollama";
import * as openai from "@throughline/history/openai";
import { describe, expect, it } from "vitest";
import { storedRecords } from "./stored-records.ts";

type Drafts = ReturnType<typeof anthropic.recordsFromMessages>;
const messagesOf = (drafts: Drafts): readonly unknown[] => drafts.map(({ message }) => message);
const render = (name: TargetName, drafts: Drafts, carryBlocks: readonly string[] = []): unknown =>
  historyTargets.get(name)?.render(buildContext(storedRecords(drafts)), {
    trailingAssistant: "keep",
    carryBlocks: new Set(carryBlocks),
  }).messages;

describe("the forms that messages may have", () => {
  it("Anthropic: texts as strings, failed results beside others, and blocks of its own", () => {
    const search = { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "a" } };
    const found = { type: "web_search_tool_result", tool_use_id: "s1", content: [] };
    const future = { type: "hologram", data: [1, 2] };
    const drafts = anthropic.recordsFromMessages(
      [
        { role: "user", content: "Look." },
        { role: "assistant", content: [search, found, { type: "text", text: "There.", citations: [{ url: "u" }] }] },
        { role: "user", content: [{ type: "text", text: "And?", cache_control: { type: "ephemeral" } }, future] },
        {
          role: "assistant",
          content: [
            { type: "redacted_thinking", data: "xyz" },
            { type: "tool_use", id: "t1", name: "read", input: { path: "a" } },
            { type: "tool_use", id: "t2", name: "read", input: "a" },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "t2", content: [{ type: "text", text: "no" }], is_error: true },
            { type: "tool_result", tool_use_id: "t1", content: "yes" },
            { type: "text", text: "Go on." },
          ],
        },
        { role: "assistant", content: "Done." },
      ],
      { model: "claude-opus-5" },
    );
    const by = { api: "anthropic-messages", provider: "anthropic", model: "claude-opus-5" };
    const call = (id: string, args: object, more: object = {}): object => ({
      type: "toolCall",
      id,
      name: "read",
      arguments: args,
      ...more,
    });
    expect(messagesOf(drafts)).toEqual([
      { role: "user", content: "Look." },
      {
        role: "assistant",
        content: [search, found, { type: "text", text: "There.", citations: [{ url: "u" }] }],
        ...by,
        stopReason: "stop",
      },
      { role: "user", content: [{ type: "text", text: "And?", cache_control: { type: "ephemeral" } }, future] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "", thinkingSignature: "xyz", redacted: true },
          call("t1", { path: "a" }),
          call("t2", {}, { partialJson: "a" }),
        ],
        ...by,
        stopReason: "toolUse",
      },
      { role: "toolResult", toolCallId: "t2", toolName: "read", content: "no", isError: true },
      { role: "toolResult", toolCallId: "t1", toolName: "read", content: "yes", isError: false },
      { role: "user", content: "Go on." },
      { role: "assistant", content: [{ type: "text", text: "Done." }], ...by, stopReason: "stop" },
    ]);
    const sent = render("anthropic", drafts, ["hologram"]) as { content: unknown[] }[];
    expect(sent[1]?.content.slice(0, 2)).toEqual([search, found]);
    expect(sent[2]?.content[1]).toEqual(future);
    expect(sent[3]?.content[0]).toEqual({ type: "redacted_thinking", data: "xyz" });
  });

  it("Chat Completions: refusals, parts, files, tools of plain text and the calls of old", () => {
    const drafts = openai.recordsFromMessages([
      { role: "developer", content: [{ type: "text", text: "Be brief." }] },
      {
        role: "user",
        name: "ada",
        content: [
          { type: "text", text: "Look." },
          { type: "image_url", image_url: { url: "data:image/png;base64,aWs=", detail: "high" } },
          { type: "image_url", image_url: { url: "https://example.com/a.png" } },
          { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,aWs=" } },
          { type: "file", file: { file_id: "f1" } },
          { type: "input_audio", input_audio: { data: "aWs=", format: "wav" } },
        ],
      },
      { role: "assistant", content: null, refusal: "I will not." },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "custom", custom: { name: "sh", input: "ls" } }],
      },
      { role: "tool", tool_call_id: "c1", content: [{ type: "text", text: "[error] none" }] },
      { role: "assistant", content: "", function_call: { name: "old", arguments: '{"a":1}' } },
      { role: "function", name: "old", content: "fine" },
    ]);
    expect(messagesOf(drafts)).toMatchObject([
      { role: "developer", content: "Be brief." },
      {
        role: "user",
        name: "ada",
        content: [
          { type: "text", text: "Look." },
          { type: "image", data: "aWs=", mimeType: "image/png", detail: "high" },
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
          { type: "document", source: { type: "base64", media_type: "application/pdf", data: "aWs=" }, title: "a.pdf" },
          { type: "file", file: { file_id: "f1" } },
          { type: "input_audio", input_audio: { data: "aWs=", format: "wav" } },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "I will not." }] },
      { role: "assistant", content: [{ type: "toolCall", id: "c1", name: "sh", arguments: { input: "ls" } }] },
      { role: "toolResult", toolCallId: "c1", toolName: "sh", content: "none", isError: true },
      { role: "assistant", content: [{ type: "toolCall", id: "call_1", name: "old", arguments: { a: 1 } }] },
      { role: "toolResult", toolCallId: "call_1", toolName: "old", content: "fine", isError: false },
    ]);
    const sent = render("openai", drafts, ["file", "input_audio"]) as { content: unknown[] }[];
    expect(sent[1]?.content.slice(-2)).toEqual([
      { type: "file", file: { file_id: "f1" } },
      { type: "input_audio", input_audio: { data: "aWs=", format: "wav" } },
    ]);
  });

  it("Responses: items in a row are one reply, and items of other tools are kept", () => {
    const search = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } };
    const reasoning = {
      type: "reasoning",
      id: "rs_1",
      summary: [{ type: "summary_text", text: "hm" }],
      encrypted_content: "e",
    };
    const output = { type: "computer_call_output", call_id: "x", output: { type: "computer_screenshot" } };
    const drafts = openai.recordsFromMessages(
      [
        { role: "user", content: "Look." },
        reasoning,
        search,
        {
          type: "function_call",
          id: "fc_1",
          call_id: "c1",
          name: "read",
          arguments: '{"path":"a"}',
          status: "completed",
        },
        { type: "function_call_output", call_id: "c1", output: "[error] none" },
        output,
        {
          type: "message",
          id: "m1",
          status: "completed",
          role: "assistant",
          content: [
            { type: "output_text", text: "No.", annotations: [] },
            { type: "refusal", refusal: "Never." },
          ],
        },
      ],
      { model: "gpt-5" },
    );
    expect(messagesOf(drafts)).toMatchObject([
      { role: "user", content: "Look." },
      {
        role: "assistant",
        api: "openai-responses",
        content: [
          { type: "thinking", thinking: "hm", thinkingSignature: JSON.stringify(reasoning) },
          search,
          { type: "toolCall", id: "c1", name: "read", arguments: { path: "a" } },
        ],
      },
      { role: "toolResult", toolCallId: "c1", toolName: "read", content: "none", isError: true },
      { role: "user", content: [output] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "No." },
          { type: "text", text: "Never." },
        ],
      },
    ]);
    expect(render("openai-responses", drafts, ["web_search_call"])).toContainEqual(search);
  });

  it("Responses: what a program adds between the messages is no reply", () => {
    const added = { type: "additional_tools", id: "at_1", role: "developer", tools: [] };
    const secret = { type: "encrypted_content", encrypted_content: "e" };
    const between = {
      type: "agent_message",
      author: "/root",
      recipient: "/root/a",
      content: [{ type: "input_text", text: "A task." }, secret],
    };
    const drafts = openai.recordsFromMessages(
      [
        added,
        { role: "user", content: "Look." },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "Done." }] },
        between,
        { type: "compaction_trigger" },
      ],
      { model: "gpt-6" },
    );
    expect(messagesOf(drafts)).toMatchObject([
      { role: "user", content: [added] },
      { role: "user", content: "Look." },
      { role: "assistant", content: [{ type: "text", text: "Done." }] },
      { role: "user", content: [{ type: "text", text: "A task." }, secret] },
      { role: "user", content: [{ type: "compaction_trigger" }] },
    ]);
  });

  it("Ollama and Gemini: results go to the oldest open call of their tool", () => {
    const call = (name: string, at: number): object => ({ function: { name, arguments: { at } } });
    const drafts = ollama.recordsFromMessages([
      { role: "user", content: "Look.", images: [new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])] },
      { role: "assistant", content: "", tool_calls: [call("read", 1), call("look", 2), call("read", 3)] },
      { role: "tool", tool_name: "look", content: "two" },
      { role: "tool", tool_name: "read", content: "one" },
      { role: "tool", tool_name: "read", content: "[error] three" },
      { role: "assistant", content: "", tool_calls: [call("read", 4)] },
      { role: "user", content: "Wait." },
      { role: "assistant", content: "", tool_calls: [call("read", 5)] },
      { role: "tool", tool_name: "read", content: "five" },
    ]);
    const calls = messagesOf(drafts).flatMap((message) => {
      const { content } = message as { content: unknown };
      return Array.isArray(content) ? (content as { type: string; id: string; arguments: { at: number } }[]) : [];
    });
    const idAt = (at: number): string =>
      calls.find((one) => one.type === "toolCall" && one.arguments.at === at)?.id ?? "";
    expect(messagesOf(drafts).filter((message) => (message as { role: string }).role === "toolResult")).toMatchObject([
      { toolCallId: idAt(2), content: "two" },
      { toolCallId: idAt(1), content: "one" },
      { toolCallId: idAt(3), content: "three", isError: true },
      { toolCallId: idAt(5), content: "five" },
    ]);
    expect(calls[1]).toMatchObject({ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" });

    const code = { executableCode: { language: "PYTHON", code: "1" } };
    const contents = gemini.recordsFromMessages(
      [
        { parts: [{ text: "Look." }, { fileData: { fileUri: "https://example.com/a.png", mimeType: "image/png" } }] },
        {
          role: "model",
          parts: [code, { functionCall: { id: "x", name: "read", args: {} } }, { functionCall: { name: "read" } }],
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "x", name: "read", response: { result: [1] } } },
            { functionResponse: { name: "read", response: { error: "none" } } },
          ],
        },
      ],
      { model: "gemini-2" },
    );
    expect(messagesOf(contents)).toMatchObject([
      { role: "user", content: [{ text: "Look." }, { type: "image", source: { url: "https://example.com/a.png" } }] },
      {
        role: "assistant",
        content: [{ type: "executableCode", ...code }, { id: "x" }, { id: "call_1", arguments: {} }],
      },
      { toolCallId: "x", content: '{"result":[1]}', isError: false },
      { toolCallId: "call_1", content: "none", isError: true },
    ]);
    expect((render("gemini", contents, ["executableCode"]) as { parts: unknown[] }[])[1]?.parts[0]).toEqual(code);
  });

  it("Mistral and Bedrock: the names of their SDKs, bytes, and JSON in results", () => {
    const chat = mistral.recordsFromMessages([
      { role: "user", content: [{ type: "image_url", imageUrl: { url: "https://example.com/a.png" } }] },
      {
        role: "assistant",
        content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }],
        toolCalls: [{ id: "abcdefghi", function: { name: "read", arguments: { path: "a" } } }],
      },
      { role: "tool", toolCallId: "abcdefghi", name: "read", content: "fine" },
    ]);
    expect(messagesOf(chat)).toMatchObject([
      { content: [{ type: "image", source: { url: "https://example.com/a.png" } }] },
      {
        content: [
          { type: "thinking", thinking: "hm" },
          { id: "abcdefghi", arguments: { path: "a" } },
        ],
      },
      { toolCallId: "abcdefghi", toolName: "read", content: "fine" },
    ]);
    const cache = { cachePoint: { type: "default" } };
    const converse = bedrock.recordsFromMessages([
      {
        role: "user",
        content: [
          { text: "Look." },
          { image: { format: "png", source: { bytes: new Uint8Array([105, 107]) } } },
          cache,
        ],
      },
      { role: "assistant", content: [{ toolUse: { toolUseId: "t1", name: "read", input: { path: "a" } } }] },
      { role: "user", content: [{ toolResult: { toolUseId: "t1", content: [{ json: { a: 1 } }], status: "error" } }] },
    ]);
    expect(messagesOf(converse)).toMatchObject([
      {
        content: [
          { text: "Look." },
          { type: "image", data: "aWs=", mimeType: "image/png" },
          { type: "cachePoint", ...cache },
        ],
      },
      { content: [{ type: "toolCall", id: "t1", name: "read", arguments: { path: "a" } }] },
      { toolCallId: "t1", content: '{"a":1}', isError: true },
    ]);
    expect((render("bedrock", converse, ["cachePoint"]) as { content: unknown[] }[])[0]?.content[2]).toEqual(cache);
  });

  it("are drafts that a record is made of", () => {
    const [draft] = anthropic.recordsFromMessages([{ role: "user", content: "Hi" }]);
    const record: SessionRecord = {
      id: "r1",
      parentId: null,
      timestamp: new Date(0).toISOString(),
      ...draft,
      type: "message",
    };
    expect(isRecordOfType(record, "message") && record.message).toEqual({ role: "user", content: "Hi" });
  });
});
