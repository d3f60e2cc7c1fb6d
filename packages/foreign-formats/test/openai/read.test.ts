import { foreignFormats } from "@throughline/foreign-formats";
import type { FormatLoss } from "../../src/format-writer.ts";
import { validateOpenAiChat } from "@throughline/history/openai";
import { describe, expect, it } from "vitest";
import { readUnits, refusals, talk } from "../read-units.ts";

const call = { id: "call_a", type: "function", function: { name: "read", arguments: '{"path": "a.txt"}' } };
const messages: readonly object[] = [
  { role: "developer", content: "Be brief." },
  { role: "user", name: "ada", content: [{ type: "text", text: "What is in a.txt?" }] },
  { role: "assistant", content: null, tool_calls: [call] },
  { role: "tool", tool_call_id: "call_a", content: "hello" },
  { role: "assistant", content: "It says hello.", weight: 0 },
];
const said = [
  "system: Be brief.",
  "user: What is in a.txt?",
  "assistant: ?call_a",
  "=call_a toolResult: hello",
  "assistant: It says hello.",
];
const path = "/p/chat.json";

describe("OpenAI's messages", () => {
  it.each([
    ["a list", messages],
    ["a request", { model: "gpt-5", messages, tools: [{ type: "function", function: { name: "read" } }] }],
    ["a line of a batch", { custom_id: "r1", method: "POST", body: { model: "gpt-5", messages } }],
    ["a request with its answer", { request: { messages: messages.slice(0, 4) }, response: answer("It says hello.") }],
    ["an answer before its end", { input: { messages: messages.slice(0, 4) }, preferred_output: messages.slice(4) }],
  ])("are read from %s", (_, document) => {
    for (const text of [JSON.stringify(document), JSON.stringify(document, null, 2)]) {
      const sample = { path, head: Buffer.from(text), isWhole: true };
      expect(foreignFormats.get("openai")?.detect(sample)).toBe("certain");
      const session = readUnits("openai", text, path);
      expect(talk(session)).toEqual(said);
      expect(session.findings).toEqual([]);
      const result = session.context.messages.find(({ role }) => role === "toolResult");
      expect(result).toMatchObject({ toolName: "read" });
    }
  });

  it("are read from an answer alone, with its usage", () => {
    const session = readUnits("openai", JSON.stringify(answer("Hello.")), path);
    expect(talk(session)).toEqual(["assistant: Hello."]);
    expect(session.records.find(({ type }) => type === "usage")?.record).toMatchObject({
      model: "gpt-5",
      usage: { input: 3, cacheRead: 2, output: 2 },
    });
    expect(session.records.every(({ tsMs }) => tsMs === 1_767_325_445_000)).toBe(true);
  });

  it("have ids where the format had none yet, and the same ones each time", () => {
    const old = [
      { role: "user", content: "T?" },
      { role: "assistant", content: null, function_call: { name: "t", arguments: "{}" } },
      { role: "function", name: "t", content: "42" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ type: "function", function: { name: "t", arguments: "{}" } }],
      },
      { role: "assistant", content: "So." },
    ];
    const session = readUnits("openai", JSON.stringify(old), path);
    expect(talk(session).slice(0, 3)).toEqual(["user: T?", "assistant: ?call_3", "=call_3 toolResult: 42"]);
    expect(session.records).toEqual(readUnits("openai", JSON.stringify(old), path).records);
    expect(refusals(session)).toEqual([]);
  });

  it("keep what has no place, and what cannot be read", () => {
    const odd = [
      messages[1],
      { role: "user", content: 5 },
      { role: "nobody", content: "x" },
      7,
      { role: "assistant", content: "Yes.", weight: 1, annotations: [] },
      JSON.parse('{"role":"user","content":"Hi","__proto__":{"polluted":1}}'),
    ];
    const session = readUnits("openai", JSON.stringify(odd), path);
    expect(talk(session)).toEqual(["user: What is in a.txt?", "assistant: Yes.", "user: Hi"]);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([
      ["RECORD_INVALID", 3],
      ["RECORD_INVALID", 4],
      ["LINE_MALFORMED", 5],
    ]);
    expect(session.records.find(({ seq }) => seq === 6)?.record["native"]).toEqual({ weight: 1, annotations: [] });
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("are written as a request takes them, and what has no place is reported", () => {
    const { records, headId } = readUnits("openai", JSON.stringify(messages), path);
    const session = { records, headId, sessionId: "s", cwd: "", label: null, title: null, createdAtMs: 0 };
    const losses: FormatLoss[] = [];
    const { writer } = foreignFormats.get("openai") ?? {};
    const pieces = [...(writer?.write(session, { onLoss: (loss) => losses.push(loss) }) ?? [])];
    const texts = pieces.filter((text) => text !== undefined);
    const written = texts.map((text) => JSON.parse(text) as never);
    expect(validateOpenAiChat(written)).toEqual([]);
    expect(written).toMatchObject([{ content: "Be brief." }, {}, { tool_calls: [{ id: "call_a" }] }, {}, {}]);
    expect(losses.map(({ kind }) => kind)).toEqual(["messages without time and usage"]);
  });
});

function answer(content: string): object {
  return {
    id: "chatcmpl-1",
    created: 1_767_325_445,
    model: "gpt-5",
    choices: [
      { index: 0, message: { role: "assistant", content, refusal: null }, finish_reason: "stop" },
      { index: 1, message: { role: "assistant", content: "Another.", refusal: null }, finish_reason: "stop" },
    ],
    usage: { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 2 }, completion_tokens: 2, total_tokens: 7 },
  };
}
