import type OpenAI from "openai";
import type { ChatModel, ChatReply, ChatRequest } from "@throughline/core";
import { isFields, outputFields, toolChoiceFields, wireToolChoices } from "@throughline/core/internal";
import { streamedEvents } from "./answer-body.ts";
import { collectReply } from "./collect-reply.ts";
import { waitOptions } from "./fetch-without-long-waits.ts";
import { answersInJson, effortOf, openAiErrors, signalOf, type OpenAiConnection } from "./openai-client.ts";
import { chatEnd, takeChatChunk, takeChatCompletion } from "./openai-chat-reply.ts";
import { ReplyDraft } from "./reply-draft.ts";
import { takesImagesByName } from "./takes-images.ts";

type LimitField = "max_completion_tokens" | "max_tokens";

export function openAiCompletions(
  connect: () => Promise<OpenAiConnection>,
  { provider, limitField }: { readonly provider: string; readonly limitField: LimitField },
): ChatModel {
  return {
    provider,
    api: "openai",
    toolChoices: wireToolChoices.openai,
    // Other servers differ in what they make of a schema, but all that call tools can be given one.
    acceptsOutput: ({ modelId }) => provider === "openai" && answersInJson(modelId),
    takesImages: async (modelId) => takesImagesByName("openai", modelId),
    chat: async (request) => askChat(request, await connect(), provider, limitField),
  };
}

function askChat(
  request: ChatRequest,
  connection: OpenAiConnection,
  provider: string,
  limitField: LimitField,
): Promise<ChatReply> {
  const { client } = connection;
  const errors = openAiErrors(connection);
  const { brokenOff } = errors;
  const { modelId, onDelta } = request;
  const draft = new ReplyDraft({ api: "openai-completions", provider, model: modelId }, onDelta ?? null);
  const body = chatBody(request, limitField);
  const how = { ...signalOf(request.signal), ...waitOptions(request) };
  if (onDelta === undefined) {
    return collectReply({
      request,
      draft,
      open: async () => [await client.chat.completions.create(body, how)],
      take: (completion) => takeChatCompletion(completion, draft, errors),
      endOf: chatEnd,
      brokenOff,
    });
  }
  return collectReply({
    request,
    draft,
    open: async () =>
      streamedEvents(
        client.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } }, how),
        (text) => takeChatCompletion(text, draft, errors),
      ),
    take: (chunk) => takeChatChunk(chunk, draft, errors),
    endOf: chatEnd,
    brokenOff,
  });
}

function chatBody(
  { modelId, system, messages, tools = [], toolChoice, output, maxOutputTokens = null, thinkingLevel }: ChatRequest,
  limitField: LimitField,
): OpenAI.ChatCompletionCreateParamsNonStreaming {
  const effort = effortOf(thinkingLevel);
  return {
    model: modelId,
    messages: withSystem(system, messages) as OpenAI.ChatCompletionMessageParam[],
    ...(tools.length === 0 ? {} : { tools: tools.map(chatTool) }),
    ...(toolChoice === undefined || tools.length === 0 ? {} : toolChoiceFields("openai", toolChoice)),
    ...(output === undefined ? {} : outputFields("openai", output)),
    ...(maxOutputTokens === null ? {} : { [limitField]: maxOutputTokens }),
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
  };
}

function chatTool({
  name,
  description,
  inputSchema,
}: NonNullable<ChatRequest["tools"]>[number]): OpenAI.ChatCompletionTool {
  return { type: "function", function: { name, description, parameters: inputSchema as OpenAI.FunctionParameters } };
}

/**
 * Adds the system prompt unless history already placed it among the messages, which it does for formats that expect it
 * there.
 */
export function withSystem(system: string | null, messages: readonly unknown[]): readonly unknown[] {
  if (system === null || system === "") return messages;
  const [first] = messages;
  const isThere = isFields(first) && first["role"] === "system" && first["content"] === system;
  return isThere ? messages : [{ role: "system", content: system }, ...messages];
}
