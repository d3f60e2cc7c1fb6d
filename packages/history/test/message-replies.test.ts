import * as bedrock from "@throughline/history/bedrock";
import * as gemini from "@throughline/history/gemini";
import * as mistral from "@throughline/history/mistral";
import { describe, expect, it } from "vitest";

describe("replies of the providers without a model of ours", () => {
  it("Gemini: thinking, signatures, calls and usage; what a filter ended is an error", () => {
    const reply = {
      candidates: [
        {
          content: {
            role: "model",
            parts: [
              { text: "hm", thought: true },
              { text: "Hi.", thoughtSignature: "c2ln" },
              { functionCall: { name: "read", args: { path: "a" } }, thoughtSignature: "c2ln" },
            ],
          },
          finishReason: "STOP",
        },
      ],
      usageMetadata: {
        promptTokenCount: 100,
        cachedContentTokenCount: 40,
        candidatesTokenCount: 10,
        thoughtsTokenCount: 5,
      },
      modelVersion: "gemini-3-pro-001",
      responseId: "r1",
    };
    expect(gemini.recordFromReply(reply, { model: "gemini-3-pro", nextCallId: () => "own" }).message).toEqual({
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm" },
        { type: "text", text: "Hi.", textSignature: "c2ln" },
        { type: "toolCall", id: "own", name: "read", arguments: { path: "a" }, thoughtSignature: "c2ln" },
      ],
      api: "google-generative-ai",
      provider: "google",
      model: "gemini-3-pro",
      usage: { input: 60, output: 15, cacheRead: 40, cacheWrite: 0, reasoning: 5, totalTokens: 115 },
      stopReason: "toolUse",
      responseId: "r1",
      responseModel: "gemini-3-pro-001",
    });
    expect(gemini.recordFromReply({ promptFeedback: { blockReason: "SAFETY" } }).message).toMatchObject({
      content: [],
      stopReason: "error",
      errorMessage: "The provider ended the answer (SAFETY).",
    });
  });

  it("Mistral: as JSON and as its SDK gives it", () => {
    const call = { id: "abcdefghi", function: { name: "read", arguments: "{}" } };
    const json = {
      id: "x",
      model: "mistral-large",
      choices: [{ message: { role: "assistant", content: "Hi.", tool_calls: [call] }, finish_reason: "tool_calls" }],
      usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
    };
    const ofSdk = {
      id: "x",
      model: "mistral-large",
      choices: [{ message: { role: "assistant", content: "Hi.", toolCalls: [call] }, finishReason: "tool_calls" }],
      usage: { promptTokens: 10, completionTokens: 2, totalTokens: 12 },
    };
    expect(mistral.recordFromReply(json)).toEqual(mistral.recordFromReply(ofSdk));
    expect(mistral.recordFromReply(json).message).toMatchObject({
      content: [{ text: "Hi." }, { id: "abcdefghi", arguments: {} }],
      model: "mistral-large",
      stopReason: "toolUse",
      usage: { input: 10, output: 2, totalTokens: 12 },
    });
  });

  it("Bedrock: reasoning, calls, the cache in the usage, and guardrails", () => {
    const content = [
      { reasoningContent: { reasoningText: { text: "hm", signature: "sig" } } },
      { reasoningContent: { redactedContent: new Uint8Array([105, 107]) } },
      { text: "Hi." },
      { toolUse: { toolUseId: "t1", name: "read", input: { path: "a" } } },
    ];
    const usage = {
      inputTokens: 10,
      outputTokens: 5,
      totalTokens: 45,
      cacheReadInputTokens: 30,
      cacheWriteInputTokens: 0,
    };
    const reply = { output: { message: { role: "assistant", content } }, stopReason: "tool_use", usage };
    expect(bedrock.recordFromReply(reply, { model: "claude" }).message).toMatchObject({
      content: [
        { type: "thinking", thinking: "hm", thinkingSignature: "sig" },
        { type: "thinking", thinking: "", thinkingSignature: "aWs=", redacted: true },
        { type: "text", text: "Hi." },
        { type: "toolCall", id: "t1" },
      ],
      model: "claude",
      provider: "amazon-bedrock",
      stopReason: "toolUse",
      usage: { input: 10, output: 5, cacheRead: 30, totalTokens: 45 },
    });
    expect(bedrock.recordFromReply({ ...reply, stopReason: "guardrail_intervened" }).message).toMatchObject({
      stopReason: "error",
    });
  });
});
