import type { Anthropic } from "@anthropic-ai/sdk";
import type { Content, GenerateContentParameters } from "@google/genai";
import type { Anthropic as OldestAnthropic } from "anthropic-sdk-oldest";
import type { Content as OldestContent } from "google-genai-oldest";
import type { Message } from "ollama";
import type { Message as OldestMessage } from "ollama-oldest";
import type { OpenAI } from "openai";
import type { OpenAI as OldestOpenAI } from "openai-oldest";
import { describe, expect, it } from "vitest";
import { buildContext } from "../src/build-context.ts";
import { renderAnthropic } from "../src/anthropic.ts";
import { renderGemini } from "../src/gemini.ts";
import { renderOllama } from "../src/ollama.ts";
import { renderOpenAiChat, renderOpenAiResponses } from "../src/openai.ts";

/**
 * The annotations are the test: `tsc -b` fails where a rendering does not fit the oldest or the newest SDK that the README
 * names. Mistral and Bedrock are rendered as their JSON, which their SDKs write in another form.
 */
describe("what history renders", () => {
  const context = buildContext([]);
  const options = { system: "Be brief." } as const;

  it("is what @anthropic-ai/sdk takes", () => {
    const { messages, system } = renderAnthropic(context, options);
    const params: Anthropic.MessageParam[] = messages;
    const oldest: OldestAnthropic.MessageParam[] = messages;
    const request: Anthropic.MessageCreateParams = { model: "m", max_tokens: 1, system: system ?? "", messages };
    expect([params, oldest, request.system]).toEqual([[], [], "Be brief."]);
  });

  it("is what openai takes for Chat Completions", () => {
    const { messages } = renderOpenAiChat(context, options);
    const params: OpenAI.ChatCompletionMessageParam[] = messages;
    const oldest: OldestOpenAI.ChatCompletionMessageParam[] = messages;
    const request: OpenAI.ChatCompletionCreateParams = { model: "m", messages };
    expect([params, oldest, request.messages]).toEqual(Array(3).fill([{ role: "system", content: "Be brief." }]));
  });

  it("is what openai takes for Responses", () => {
    const { messages, system } = renderOpenAiResponses(context, options);
    const params: OpenAI.Responses.ResponseInputItem[] = messages;
    const oldest: OldestOpenAI.Responses.ResponseInputItem[] = messages;
    const request: OpenAI.Responses.ResponseCreateParams = { model: "m", instructions: system, input: messages };
    expect([params, oldest, request.instructions]).toEqual([[], [], "Be brief."]);
  });

  it("is what ollama takes", () => {
    const { messages } = renderOllama(context, options);
    const params: Message[] = messages;
    const oldest: OldestMessage[] = messages;
    expect([params, oldest]).toEqual(Array(2).fill([{ role: "system", content: "Be brief." }]));
  });

  it("is what @google/genai takes", () => {
    const { messages, system } = renderGemini(context, options);
    const params: Content[] = messages;
    const oldest: OldestContent[] = messages;
    const request: GenerateContentParameters = {
      model: "m",
      contents: messages,
      config: { systemInstruction: system ?? "" },
    };
    expect([params, oldest, request.config]).toEqual([[], [], { systemInstruction: "Be brief." }]);
  });

  it("does not fit where a field has another type", () => {
    const { messages } = renderOpenAiChat(context, options);
    // @ts-expect-error A rendering for another provider: were the types open, this would compile.
    const wrong: Anthropic.MessageParam[] = messages;
    expect(wrong).toBe(messages);
  });
});
