import type { Anthropic } from "@anthropic-ai/sdk";
import { buildContext } from "@throughline/history";
import { renderAnthropic } from "@throughline/history/anthropic";
import { renderOllama } from "@throughline/history/ollama";
import { renderOpenAiChat, renderOpenAiResponses } from "@throughline/history/openai";
import type { Message } from "ollama";
import type { OpenAI } from "openai";
import { describe, expect, it } from "vitest";

/**
 * The annotations are the test: `tsc -b` fails where a rendering does not fit its SDK. The SDKs are the oldest and the newest
 * supported ones at once: the peer ranges begin at the versions installed here.
 */
describe("what history renders", () => {
  const context = buildContext([]);

  it("is what @anthropic-ai/sdk takes", () => {
    const { messages, system } = renderAnthropic(context, { system: "Be brief." });
    const params: Anthropic.MessageParam[] = messages;
    const request: Anthropic.MessageCreateParams = { model: "m", max_tokens: 1, system: system ?? "", messages };
    expect([params, request.system]).toEqual([[], "Be brief."]);
  });

  it("is what openai takes for Chat Completions", () => {
    const { messages } = renderOpenAiChat(context, { system: "Be brief." });
    const params: OpenAI.ChatCompletionMessageParam[] = messages;
    const request: OpenAI.ChatCompletionCreateParams = { model: "m", messages };
    expect(params).toEqual([{ role: "system", content: "Be brief." }]);
    expect(request.messages).toBe(messages);
  });

  it("is what openai takes for Responses", () => {
    const { messages, system } = renderOpenAiResponses(context, { system: "Be brief." });
    const params: OpenAI.Responses.ResponseInputItem[] = messages;
    const request: OpenAI.Responses.ResponseCreateParams = { model: "m", instructions: system, input: messages };
    expect([params, request.instructions]).toEqual([[], "Be brief."]);
  });

  it("is what ollama takes", () => {
    const { messages } = renderOllama(context, { system: "Be brief." });
    const params: Message[] = messages;
    expect(params).toEqual([{ role: "system", content: "Be brief." }]);
  });
});
