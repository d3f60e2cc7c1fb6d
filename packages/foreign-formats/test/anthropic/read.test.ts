import { foreignFormats } from "@throughline/foreign-formats";
import type { FormatLoss } from "../../src/format-writer.ts";
import { validateAnthropic } from "@throughline/history/anthropic";
import { describe, expect, it } from "vitest";
import { readUnits, refusals, talk, type ReadSession } from "../read-units.ts";

const messages: readonly object[] = [
  { role: "user", content: "What is in a.txt?" },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Hm.", signature: "c2ln" },
      { type: "text", text: "I look." },
      { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a.txt" } },
      { type: "tool_use", id: "toolu_2", name: "read", input: {} },
    ],
  },
  {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "toolu_1", content: "hello" },
      { type: "tool_result", tool_use_id: "toolu_2", is_error: true, content: [{ type: "text", text: "No." }] },
      { type: "text", text: "Well?" },
    ],
  },
  { role: "assistant", content: "It says hello." },
];
const said = [
  "user: What is in a.txt?",
  "assistant: (thinking) I look. ?toolu_1 ?toolu_2",
  "=toolu_1 toolResult: hello",
  "=toolu_2 toolResult: No.",
  "user: Well?",
  "assistant: It says hello.",
];
const path = "/p/chat.json";
const model = "claude-opus-4-7";
const answer = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model,
  content: [
    { type: "text", text: "I look." },
    { type: "tool_use", id: "toolu_1", name: "read", input: {} },
  ],
  stop_reason: "tool_use",
  usage: { input_tokens: 3, cache_read_input_tokens: 7, output_tokens: 4 },
};

function detect(text: string): unknown {
  return foreignFormats.get("anthropic")?.detect({ path, head: Buffer.from(text), isWhole: true });
}

function writtenOf(
  name: "anthropic" | "sharegpt",
  { records, headId }: ReadSession,
): readonly [object[], FormatLoss[]] {
  const session = { records, headId, sessionId: "s", cwd: "", label: null, title: null, createdAtMs: 0 };
  const losses: FormatLoss[] = [];
  const { writer } = foreignFormats.get(name) ?? {};
  const pieces = [...(writer?.write(session, { onLoss: (loss) => losses.push(loss) }) ?? [])];
  const texts = pieces.filter((text) => text !== undefined);
  return [texts.map((text) => JSON.parse(text) as object), losses];
}

describe("Anthropic's messages", () => {
  it.each([
    ["a list", messages],
    ["a request", { model, system: "Be brief.", max_tokens: 100, messages }],
    ["a line of a batch", { custom_id: "r1", params: { model, max_tokens: 9, messages } }],
    [
      "a request with its answer",
      {
        request: { model, messages: messages.slice(0, 3) },
        response: { ...answer, content: [{ type: "text", text: "It says hello." }] },
      },
    ],
  ])("are read from %s", (_, document) => {
    for (const text of [JSON.stringify(document), JSON.stringify(document, null, 2)]) {
      expect(detect(text)).toBe("certain");
      const session = readUnits("anthropic", text, path);
      expect(talk(session)).toEqual(said);
      expect(session.findings).toEqual([]);
      expect(refusals(session)).toEqual([]);
      expect(session.context.messages[2]).toMatchObject({ toolName: "read", isError: false });
      expect(session.context.messages[3]).toMatchObject({ isError: true });
    }
  });

  it.each([
    ["alone", answer],
    ["in a batch's results", { custom_id: "r1", result: { type: "succeeded", message: answer } }],
  ])("are read from an answer, whose blocks are one reply: %s", (_, document) => {
    const text = JSON.stringify(document);
    expect(detect(text)).toBe("certain");
    const session = readUnits("anthropic", text, path);
    expect(talk(session)).toEqual(["assistant: I look.", "assistant: ?toolu_1"]);
    expect(session.records.filter(({ type }) => type === "usage").map(({ record }) => record["usage"])).toMatchObject([
      { input: 3, cacheRead: 7, output: 4 },
    ]);
    expect(refusals(session)).toEqual([]);
  });

  it("of plain texts alone are OpenAI's, which mean the same", () => {
    expect(detect(JSON.stringify([{ role: "user", content: "Hi" }]))).toBeNull();
    expect(detect(JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] }))).toBe("certain");
  });

  it("keep what nobody knows", () => {
    const odd = [
      messages[0],
      { role: "user", content: 5 },
      { novelty: 1 },
      { role: "assistant", content: [{ type: "novelty" }] },
    ];
    const session = readUnits("anthropic", JSON.stringify(odd), path);
    expect(talk(session)).toEqual(["user: What is in a.txt?", "assistant: [novelty]"]);
    expect(session.findings.map(({ code, line }) => [code, line])).toEqual([["RECORD_INVALID", 3]]);
  });

  it("are written as the API takes them, and mean the same", () => {
    const read = readUnits("anthropic", JSON.stringify({ model, messages }), path);
    const [written, losses] = writtenOf("anthropic", read);
    expect(validateAnthropic(written as never)).toEqual([]);
    const again = readUnits("anthropic", JSON.stringify({ model, messages: written }), path);
    expect(talk(again)).toEqual(said);
    expect(losses.map(({ what, kind }) => `${what} ${kind}`)).toEqual([
      "changed user messages joined",
      "changed messages without time and usage",
    ]);
  });

  it("are written for training without thinking", () => {
    const read = readUnits("anthropic", JSON.stringify({ model, messages }), path);
    const [written, losses] = writtenOf("sharegpt", read);
    expect(losses.map(({ what, kind }) => `${what} ${kind}`)).toEqual([
      "left-out thinking",
      "left-out mark of a failed result",
      "changed messages without time and usage",
    ]);
    const again = readUnits("sharegpt", JSON.stringify({ conversations: written }), path);
    expect(talk(again)).toEqual([
      "user: What is in a.txt?",
      "assistant: I look.",
      "assistant: ?call_4_1",
      "assistant: ?call_5_1",
      "=call_4_1 toolResult: hello",
      "=call_5_1 toolResult: No.",
      "user: Well?",
      "assistant: It says hello.",
    ]);
    expect(refusals(again)).toEqual([]);
  });
});
