import { readFileSync } from "node:fs";
import { foreignFormats } from "@throughline/foreign-formats";
import { describe, expect, it } from "vitest";
import { corpusFiles } from "../corpus-files.ts";
import { readUnits, refusals, talk } from "../read-units.ts";

const path = "/p/conversation.txt";
const verdict = (text: string): unknown =>
  foreignFormats.get("harmony")?.detect({ path, head: Buffer.from(text), isWhole: true });

const conversation = [
  "<|start|>system<|message|>You are a model.<|end|>",
  "<|start|>developer<|message|># Instructions\n\nBe brief.<|end|>",
  "<|start|>user<|message|>Weather in Oslo?\n<|start|> is no message here.<|end|>\n",
  "<|start|>assistant<|channel|>analysis<|message|>I look it up.<|end|>",
  "<|start|>assistant<|channel|>commentary<|message|>Looking.<|end|>",
  '<|start|>assistant to=functions.weather<|channel|>commentary <|constrain|>json<|message|>{"city":"Oslo"}<|call|>',
  "<|start|>assistant<|channel|>analysis to=python code<|message|>print(1)<|call|>",
  "<|start|>python to=assistant<|channel|>analysis<|message|>1<|end|>",
  '<|start|>functions.weather to=assistant<|channel|>commentary<|message|>{"degrees":-3}<|end|>',
  "<|start|>assistant<|channel|>final<|message|>Cold.<|return|>",
  "<|start|>assistant",
];

describe("a conversation rendered for gpt-oss", () => {
  it("is read message by message: channels, calls by their tools, results by who sent them", () => {
    const session = readUnits("harmony", conversation.join(""), path);
    expect(session.units).toBe(conversation.length);
    expect(talk(session)).toEqual([
      "system: You are a model.",
      "system: Be brief.",
      "user: Weather in Oslo?\n<|start|> is no message here.",
      "assistant: (thinking)",
      "assistant: Looking.",
      "assistant: ?call_6",
      "assistant: ?call_7",
      "=call_7 toolResult: 1",
      '=call_6 toolResult: {"degrees":-3}',
      "assistant: Cold.",
    ]);
    const replies = session.records.flatMap(({ record }) => (record["message"] as { responseId?: string }) ?? []);
    expect(replies.map(({ responseId }) => responseId)).toEqual([
      ...Array.from({ length: 3 }, () => undefined),
      ...Array.from({ length: 4 }, () => session.records[3]?.id),
      undefined,
      undefined,
      session.records[9]?.id,
    ]);
    const called = session.context.messages.flatMap(({ content }) => content.filter(({ type }) => type === "toolCall"));
    expect(called).toMatchObject([
      { name: "weather", arguments: { city: "Oslo" } },
      { name: "python", arguments: { input: "print(1)" } },
    ]);
    expect(session.records.at(-1)?.record).toMatchObject({ customType: "harmony.prompt", appendMode: "side" });
    expect([session.findings, refusals(session)]).toEqual([[], []]);
  });

  it("that a model began to write is read as far as it goes, and a call that is cut off was never made", () => {
    const written = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>2 + 2 = ";
    expect(talk(readUnits("harmony", written, path))).toEqual(["assistant: (thinking)", "assistant: 2 + 2 = "]);
    const call = '<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{"a":';
    expect(talk(readUnits("harmony", call, path))).toEqual([]);
    expect(talk(readUnits("harmony", `${call}1}`, path))).toEqual(["assistant: ?call_1"]);
  });

  it.each([
    ["a tool without a call", "<|start|>functions.f to=assistant<|message|>x<|end|>", "message"],
    ["no role", "<|start|><|message|>x<|end|>", "custom"],
    ["a mark for a role", "<|start|><|channel|>final<|message|>x<|end|>", "custom"],
    ["a long header", `<|start|>${"x".repeat(5000)}<|message|>x<|end|>`, "custom"],
    ["text alone", "Hello", "custom"],
  ])("keeps %s", (_, text, type) => {
    const session = readUnits("harmony", `<|start|>user<|message|>Hi<|end|>${text.startsWith("<") ? text : ""}`, path);
    expect(session.records.at(-1)?.type).toBe(text.startsWith("<") ? type : "message");
    expect(refusals(session)).toEqual([]);
    expect(readUnits("harmony", text, path).records[0]?.type).toBe(type);
  });

  it("with very many calls that nothing answers knows the newest of them", () => {
    const call = (tool: string): string => `<|start|>assistant to=functions.${tool}<|message|>{}<|call|>`;
    const text = `${call("first")}${call("f").repeat(600)}<|start|>functions.f<|message|>x<|end|>`;
    const session = readUnits("harmony", text, path);
    expect(session.records.at(-1)?.record["message"]).toMatchObject({ role: "toolResult", toolCallId: "call_346" });
  });

  it("that holds numbers of tokens is kept, and a finding says so", () => {
    const text = "200006 1428 200008 13225\n200007 200006 173781 200005\n";
    const session = readUnits("harmony", text, path);
    expect(verdict(text)).toBe("certain");
    expect(session.records.map(({ record }) => record["customType"])).toEqual(["harmony.tokens", "harmony.tokens"]);
    expect(session.findings.map(({ code }) => code)).toEqual(["SOURCE_UNREAD"]);
  });

  it("is known by its first message", () => {
    const texts = [conversation[0] ?? "", "<|channel|>final<|message|>Hi", "\uFEFF\n<|start|>user<|message|>x"];
    expect(texts.map(verdict)).toEqual(["certain", "certain", "certain"]);
    const others = ["", "<|start|>", "<|im_start|>user\nHi<|im_end|>", "Say <|start|>user<|message|>x", "200006 1 2 3"];
    expect(others.map(verdict)).toEqual([null, null, null, null, null]);
  });

  it.skipIf(corpusFiles("harmony", ".txt").length === 0)("of the corpus has every message", () => {
    const counts = corpusFiles("harmony", ".txt").map((file) => {
      const text = readFileSync(file, "utf8");
      const session = readUnits("harmony", text, file);
      expect([file, refusals(session)]).toEqual([file, []]);
      return [session.context.messages.length, (text.match(/<\|message\|>/g) ?? []).length];
    });
    expect(counts.map(([read]) => read)).toEqual(counts.map(([, marked]) => marked));
    expect(counts).toHaveLength(11);
  });
});
