import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import type { ChatResponse } from "ollama";
import OpenAI from "openai";
import { ollamaRequestFields } from "../src/ollama.ts";
import type { CallContext, GuardedRequest } from "../src/guard-options.ts";

/** A provider's SDK behind the function that the guard calls. */
interface WiredModel {
  readonly provider: string;
  readonly modelId: string;
  call(request: GuardedRequest, context: CallContext): Promise<unknown>;
}

type Wiring = (url: string, streams: boolean) => WiredModel;

/** Models of the providers; the simulator gives all of them the window a test asks for. */
export const anthropicModel = "claude-opus-4-5";
const openAiModel = "gpt-4o";
const ollamaModel = "llama3.1";

const anthropic: Wiring = (url, streams) => {
  const client = new Anthropic({ apiKey: "test", baseURL: url, maxRetries: 0 });
  return {
    provider: "anthropic",
    modelId: anthropicModel,
    async call({ messages, system, tools, maxOutputTokens }, { signal, keep }) {
      const body: Anthropic.MessageCreateParamsNonStreaming = {
        model: anthropicModel,
        max_tokens: maxOutputTokens ?? 1024,
        messages: messages as Anthropic.MessageParam[],
        ...(system === null ? {} : { system }),
        ...(tools === undefined ? {} : { tools: tools as Anthropic.ToolUnion[] }),
      };
      if (!streams) return client.messages.create(body, { signal: signal ?? undefined });
      const stream = client.messages.stream(body, { signal: signal ?? undefined });
      stream.on("text", (_, text) => keep(text));
      return stream.finalMessage();
    },
  };
};

const openAiChat: Wiring = (url, streams) => {
  const client = new OpenAI({ apiKey: "test", baseURL: `${url}/v1`, maxRetries: 0 });
  return {
    provider: "openai",
    modelId: openAiModel,
    async call({ messages, maxOutputTokens }, { signal, keep }) {
      const body = {
        model: openAiModel,
        messages: messages as OpenAI.ChatCompletionMessageParam[],
        ...(maxOutputTokens === null ? {} : { max_tokens: maxOutputTokens }),
      };
      if (!streams) return client.chat.completions.create(body, { signal });
      const stream = client.chat.completions.stream(body, { signal });
      stream.on("content", (_, text) => keep(text));
      return stream.finalChatCompletion();
    },
  };
};

const openAiResponses: Wiring = (url, streams) => {
  const client = new OpenAI({ apiKey: "test", baseURL: `${url}/v1`, maxRetries: 0 });
  return {
    provider: "openai",
    modelId: openAiModel,
    async call({ messages, maxOutputTokens }, { signal, keep }) {
      const body = {
        model: openAiModel,
        input: messages as OpenAI.Responses.ResponseInput,
        ...(maxOutputTokens === null ? {} : { max_output_tokens: maxOutputTokens }),
      };
      if (!streams) return client.responses.create(body, { signal });
      let text = "";
      for await (const event of await client.responses.create({ ...body, stream: true }, { signal })) {
        if (event.type === "response.output_text.delta") keep((text += event.delta));
        if (["response.completed", "response.incomplete", "response.failed"].includes(event.type))
          return (event as { response: unknown }).response;
      }
      throw new Error("the stream ended early");
    },
  };
};

const ollama: Wiring = (url, streams) => {
  const client = new Ollama({ host: url });
  return {
    provider: "ollama",
    modelId: ollamaModel,
    async call({ messages, maxOutputTokens }, { keep }) {
      const body = {
        model: ollamaModel,
        messages: messages as { role: string; content: string }[],
        ...ollamaRequestFields,
        options: maxOutputTokens === null ? {} : { num_predict: maxOutputTokens },
      };
      if (!streams) return client.chat({ ...body, stream: false });
      let text = "";
      let last: ChatResponse | null = null;
      for await (const chunk of await client.chat({ ...body, stream: true })) {
        text += chunk.message.content;
        if (text !== "") keep(text);
        last = chunk;
      }
      return { ...last, message: { role: "assistant", content: text } };
    },
  };
};

export const wirings: Readonly<Record<"anthropic" | "openai-chat" | "openai-responses" | "ollama", Wiring>> = {
  anthropic,
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  ollama,
};

export type WiringName = keyof typeof wirings;

/** A turn of a conversation with one tool call, in a provider's shape. */
export function toolTurn(name: WiringName, number: number, result: string): object[] {
  const id = `call_${number}`;
  const ask = { role: "user", content: `Look at file ${number}.` };
  const answer = { role: "assistant", content: `File ${number} is fine.` };
  const input = { path: `${number}.txt` };
  switch (name) {
    case "anthropic":
      return [
        ask,
        { role: "assistant", content: [{ type: "tool_use", id, name: "read", input }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: result }] },
        answer,
      ];
    case "openai-chat": {
      const call = { id, type: "function", function: { name: "read", arguments: JSON.stringify(input) } };
      return [
        ask,
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: id, content: result },
        answer,
      ];
    }
    case "openai-responses":
      return [
        ask,
        { type: "function_call", call_id: id, name: "read", arguments: JSON.stringify(input) },
        { type: "function_call_output", call_id: id, output: result },
        answer,
      ];
    case "ollama": {
      const call = { function: { name: "read", arguments: input } };
      return [ask, { role: "assistant", content: "", tool_calls: [call] }, { role: "tool", content: result }, answer];
    }
  }
}
