import process from "node:process";
import { describe, expect, it } from "vitest";
import type { ChatModel, ChatRequest } from "@throughline/core";
import { chatCheckpointWriter, summarizerCheckpointWriter } from "@throughline/checkpoint";
import type { CheckpointReply } from "../src/checkpoint-writer.ts";
import { parseCheckpoint } from "../src/checkpoint-prompt.ts";
import { good } from "./checkpoint-fixture.ts";

const parsed = { ...JSON.parse(good) };

describe("the reply of a writer", () => {
  it("is read as JSON, in a fence, among words, and under other names", () => {
    for (const reply of [good, `\`\`\`json\n${good}\n\`\`\``, `Here it is {as asked}:\n${good}\nDone.`]) {
      expect(parseCheckpoint(reply)).toEqual(parsed);
    }
    const others = { summary: ["One.", "Two."], topics: "- a\n- b", decisions: ["x", { why: "y" }], questions: null };
    expect(parseCheckpoint(JSON.stringify(others))).toEqual({
      summary: "One.\n\nTwo.",
      topics: ["a", "b"],
      keyDecisions: ["x", '{"why":"y"}'],
      openQuestions: [],
    });
  });

  it("is its own summary when it is plain text, and what is left of one that broke off", () => {
    expect(parseCheckpoint("They built it.")).toMatchObject({ summary: "They built it.", topics: [] });
    expect(parseCheckpoint('{"summary": "They said \\"go\\" and')).toMatchObject({ summary: 'They said "go" and' });
    expect(parseCheckpoint("x".repeat(9000))?.summary).toHaveLength(4000);
    for (const nothing of ["", "  ", "{}", '{"topics": ["a"]}', "[1, 2", '{"summary": ""}'])
      expect(parseCheckpoint(nothing)).toBeNull();
  });

  it("is read in no time however many braces it opens and closes, and has whole characters only", () => {
    const started = process.cpuUsage();
    expect(parseCheckpoint("{".repeat(2000) + "}".repeat(6000))).toBeNull();
    expect(parseCheckpoint(`{"summary": "${"}".repeat(8000)}`)).not.toBeNull();
    expect(parseCheckpoint(`${"{ ".repeat(40)}${good}`)).toEqual(parsed);
    expect(parseCheckpoint('{"summary": "half \\ud83d of one"}')?.summary.isWellFormed()).toBe(true);
    // Of the processor: a busy machine is not a slow expression.
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(2000);
  });

  it("comes from a chat model that is asked for the parts, or from a summarizer", async () => {
    const requests: ChatRequest[] = [];
    const chat: ChatModel = {
      provider: "anthropic",
      api: "anthropic",
      chat: async (request) => {
        requests.push(request);
        const content = [{ type: "text" as const, text: good }];
        const usage = { input_tokens: 70, output_tokens: 30 };
        return { message: { role: "assistant", content, stopReason: "stop" }, stopReason: "end_turn", usage };
      },
    };
    const { signal } = new AbortController();
    const request = { text: "[User]: hello", previousSummary: "They met.", maxOutputTokens: 500, signal };
    const byChat = chatCheckpointWriter({ chat, modelId: "claude-haiku-4-5" });
    expect(byChat.name).toBe("anthropic/claude-haiku-4-5");
    const reply = (await byChat.write(request)) as CheckpointReply;
    expect(parseCheckpoint(reply.text)).toEqual(parsed);
    expect(reply.usage).toEqual({ calls: 1, input: 70, output: 30, cacheRead: 0, cacheWrite: 0 });
    const [asked] = requests;
    expect(asked).toMatchObject({ modelId: "claude-haiku-4-5", maxOutputTokens: 500, signal });
    const prompt = JSON.stringify(asked?.messages);
    for (const part of ["[User]: hello", "They met.", "keyDecisions", "openQuestions", "topics"])
      expect(prompt).toContain(part);
    const summarizer = { summarize: async () => ({ summary: "They met again.", source: "s", usage: { input: 7 } }) };
    expect(await summarizerCheckpointWriter(summarizer, "chain").write(request)).toEqual({
      text: "They met again.",
      usage: { input: 7 },
    });
  });
});
