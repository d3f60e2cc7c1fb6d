import type { AssistantMessage, ChatDelta, ToolCallBlock, ToolDefinition } from "@throughline/core";
import { auditSummary } from "@throughline/core/internal";
import { validateAnthropic } from "@throughline/history/anthropic";
import { describe, expect, it } from "vitest";
import { offline } from "../src/offline.ts";
import { converse, type Conversation } from "./conversation.ts";

const tool = (name: string, ...names: readonly string[]): ToolDefinition => ({
  name,
  description: name,
  inputSchema: { type: "object", properties: Object.fromEntries(names.map((one) => [one, { type: "string" }])) },
});
const tools: readonly ToolDefinition[] = [
  tool("read", "path"),
  tool("write", "path", "content"),
  tool("list", "path"),
  tool("edit", "path", "old_text", "new_text"),
];

function textOf({ content }: AssistantMessage): string {
  return typeof content === "string"
    ? content
    : content.flatMap((block) => ("text" in block ? [block.text] : [])).join("");
}

function callsOf({ content }: AssistantMessage): readonly ToolCallBlock[] {
  return typeof content === "string"
    ? []
    : content.filter((block): block is ToolCallBlock => block.type === "toolCall");
}

function talk(): { readonly conversation: Conversation; say(text: string): Promise<AssistantMessage> } {
  const conversation = converse(offline().chat, offline().modelId);
  return {
    conversation,
    async say(text) {
      conversation.add({ role: "user", content: text });
      return (await conversation.ask({ tools })).message;
    },
  };
}

/** Plays the tools: what was written is read. */
async function answer(
  conversation: Conversation,
  message: AssistantMessage,
  text: string,
  isError = false,
): Promise<AssistantMessage> {
  for (const { id: toolCallId, name: toolName } of callsOf(message))
    conversation.add({ role: "toolResult", toolCallId, toolName, content: [{ type: "text", text }], isError });
  return (await conversation.ask({ tools })).message;
}

describe("the offline model", () => {
  it("says in every record and every text that it is no language model", async () => {
    const { say, conversation } = talk();
    for (const text of ["help", "hello", "read a.txt", "gibberish of some kind", "what did I say before", "tools"]) {
      const message = await say(text);
      expect(message).toMatchObject({ provider: "offline", model: "offline-rules", api: "anthropic-messages" });
      expect(textOf(message)).toMatch(/^\[offline rules, not a language model\] /);
      if (callsOf(message).length > 0)
        expect(textOf(await answer(conversation, message, "x"))).toMatch(/^\[offline rules, not a language model\] /);
    }
  });

  it("counts nothing, because it has no tokens", async () => {
    const reply = await offline().chat.chat({
      modelId: "m",
      system: null,
      messages: [{ role: "user", content: "hello" }],
    });
    expect(reply.usage).toBeNull();
    expect(reply.message).not.toHaveProperty("usage");
    expect(reply.stopReason).toBe("end_turn");
  });

  it.each([
    ["list files", [["list", {}]]],
    ["List the files in src.", [["list", { path: "src" }]]],
    ["read notes.txt", [["read", { path: "notes.txt" }]]],
    [
      "read a.txt, b.txt and c.txt",
      [
        ["read", { path: "a.txt" }],
        ["read", { path: "b.txt" }],
        ["read", { path: "c.txt" }],
      ],
    ],
    ["write a.txt: one\ntwo: three", [["write", { path: "a.txt", content: "one\ntwo: three" }]]],
    ['edit a.txt: "one" to "two"', [["edit", { path: "a.txt", old_text: "one", new_text: "two" }]]],
    ['call list {"path":"x"}', [["list", { path: "x" }]]],
  ])("calls for %j what it was given", async (text, expected) => {
    const message = await talk().say(text);
    expect(callsOf(message).map(({ name, arguments: given }) => [name, given])).toEqual(expected);
    expect(message.stopReason).toBe("toolUse");
  });

  it("tells what came of the calls, or that they failed", async () => {
    const { say, conversation } = talk();
    const told = await answer(conversation, await say("read a.txt"), "the content");
    expect(textOf(told)).toContain("read answered:\nthe content");
    const failed = await answer(conversation, await say("read b.txt"), "no such file", true);
    expect(textOf(failed)).toContain("read failed:\nno such file");
    const long = await answer(conversation, await say("read c.txt"), "x".repeat(5000));
    expect(textOf(long)).toContain("(3000 characters more)");
    expect(validateAnthropic(conversation.messages())).toEqual([]);
  });

  it("copies a file in two steps, and stops when the first fails", async () => {
    const { say, conversation } = talk();
    const second = await answer(conversation, await say("copy a.txt to b.txt"), "the content");
    expect(callsOf(second)).toMatchObject([{ name: "write", arguments: { path: "b.txt", content: "the content" } }]);
    const done = await answer(conversation, second, "written");
    expect([textOf(done).includes("write answered"), done.stopReason]).toEqual([true, "stop"]);
    const failed = await answer(conversation, await say("copy c.txt to d.txt"), "no such file", true);
    expect(callsOf(failed)).toEqual([]);
    expect(textOf(failed)).toContain("read failed");
  });

  it("recalls what was said, whoever restarted in between", async () => {
    const { say, conversation } = talk();
    expect(textOf(await say("what did I say before?"))).toContain("Nothing before this");
    await say("My name is Ada Lovelace.");
    await say("remember that the key is under the mat");
    const again = converse(offline().chat, offline().modelId);
    for (const { record } of conversation.records) again.add(record["message"] as AssistantMessage);
    const ask = async (text: string): Promise<string> => {
      again.add({ role: "user", content: text });
      return textOf((await again.ask({ tools })).message);
    };
    expect(await ask("What is my name?")).toContain("Your name is Ada Lovelace.");
    expect(await ask("what did I ask you to remember")).toContain("the key is under the mat");
    expect(await ask("what did I say before")).toContain('"My name is Ada Lovelace."');
  });

  it("says so when it lacks a tool", async () => {
    const message = (
      await offline().chat.chat({ modelId: "m", system: null, messages: [{ role: "user", content: "read a" }] })
    ).message;
    expect(textOf(message)).toContain("I was given none");
    expect(message.stopReason).toBe("stop");
  });

  it("understands what stands behind a summary in the same message", async () => {
    const content = [
      { type: "text", text: "[Previous conversation summary]\n- User: my name is Ada" },
      { type: "text", text: "what is my name?" },
    ];
    const { message } = await offline().chat.chat({
      modelId: "m",
      system: null,
      messages: [{ role: "user", content }],
    });
    expect(textOf(message)).toContain("Your name is Ada.");
  });

  it("refuses to summarize in words that an audit takes for a refusal, and keeps quiet about notes to memory", async () => {
    const ask = async (content: string): Promise<string> => {
      const messages = [{ role: "user", content }];
      return textOf((await offline().chat.chat({ modelId: "m", system: null, messages })).message);
    };
    for (const text of [
      "<conversation>\n[User]: read a.txt\n</conversation>\n\nSummarise it.",
      "Summarize the conversation below.\n\nhelp",
    ]) {
      const answer = await ask(text);
      expect(auditSummary(answer)).toBe("refusal");
      expect(answer).toContain("not a language model");
    }
    expect(
      await ask("Context at 75%. Write important context to memory now.\nIf nothing to store, reply with NO_REPLY."),
    ).toMatch(/^NO_REPLY \[offline rules, not a language model\]$/);
  });

  it("streams word by word, the same answer every time, and gives ids no other answer has", async () => {
    const runs: unknown[] = [];
    for (let time = 0; time < 2; time++) {
      const deltas: ChatDelta[] = [];
      const request = { modelId: "m", system: null, messages: [{ role: "user", content: "read a and b" }], tools };
      const model = offline().chat;
      const streamed = await model.chat({ ...request, onDelta: (delta) => void deltas.push(delta) });
      expect(streamed).toEqual(await model.chat(request));
      expect(deltas.filter(({ type }) => type === "text").length).toBeGreaterThan(8);
      expect(deltas.filter(({ type }) => type === "tool-call")).toHaveLength(2);
      runs.push(streamed);
    }
    expect(runs[0]).toEqual(runs[1]);
    const { say, conversation } = talk();
    const ids: string[] = [];
    for (let time = 0; time < 3; time++) {
      const message = await say("read a and b");
      ids.push(...callsOf(message).map(({ id }) => id));
      await answer(conversation, message, "x");
    }
    expect(new Set(ids).size).toBe(6);
  });

  it("stops when it is aborted and gives what it had said", async () => {
    const controller = new AbortController();
    const partials: AssistantMessage[] = [];
    let words = 0;
    const asked = offline({ wordDelayMs: 5 }).chat.chat({
      modelId: "m",
      system: null,
      messages: [{ role: "user", content: "help" }],
      signal: controller.signal,
      onDelta: () => void (++words === 3 && controller.abort()),
      onPartial: (partial) => void partials.push(partial),
    });
    await expect(asked).rejects.toMatchObject({ code: "ABORTED" });
    expect(partials.map(textOf)).toEqual(["[offline rules, not "]);
    expect(partials[0]?.stopReason).toBe("aborted");
  });

  it("states a window only when it is given one", async () => {
    expect(await offline().chat.windowTokens?.("m")).toBeNull();
    expect(await offline({ windowTokens: 2000 }).chat.windowTokens?.("m")).toBe(2000);
  });
});
