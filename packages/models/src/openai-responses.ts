import type OpenAI from "openai";
import type { ChatModel, ChatReply, ChatRequest } from "@throughline/core";
import { streamedEvents } from "./answer-body.ts";
import { collectReply } from "./collect-reply.ts";
import { effortOf, openAiErrors, signalOf, type OpenAiConnection } from "./openai-client.ts";
import { responseEnd, takeResponse, takeResponseEvent } from "./openai-responses-reply.ts";
import { ReplyDraft } from "./reply-draft.ts";

/**
 * Models behind the Responses API. Nothing is kept at the provider: reasoning comes encrypted and goes back with the next
 * request.
 */
export function openAiResponses(
  connect: () => Promise<OpenAiConnection>,
  { provider, reasons }: { readonly provider: string; readonly reasons: boolean | null },
): ChatModel {
  return {
    provider,
    api: "openai-responses",
    chat: async (request) => askResponses(request, await connect(), provider, reasons),
    async countTokens(request): Promise<number> {
      const { client } = await connect();
      const counted = await client.responses.inputTokens.count(prompt(request), signalOf(request.signal));
      return counted.input_tokens;
    },
  };
}

function askResponses(
  request: ChatRequest,
  connection: OpenAiConnection,
  provider: string,
  reasons: boolean | null,
): Promise<ChatReply> {
  const { client } = connection;
  const errors = openAiErrors(connection);
  const { brokenOff } = errors;
  const { modelId, onDelta } = request;
  const draft = new ReplyDraft({ api: "openai-responses", provider, model: modelId }, onDelta ?? null);
  const body = responseBody(request, reasons);
  const how = signalOf(request.signal);
  if (onDelta === undefined) {
    return collectReply({
      request,
      draft,
      // Not `responses.create`, which fails in words of its own where no response came; this is the request it makes.
      open: async () => [await client.post<unknown>("/responses", { body, ...how })],
      take: (response) => takeResponse(response, draft, errors),
      endOf: responseEnd,
      brokenOff,
    });
  }
  return collectReply({
    request,
    draft,
    open: async () =>
      streamedEvents(client.responses.create({ ...body, stream: true }, how), (text) =>
        takeResponse(text, draft, errors),
      ),
    take: (event) => takeResponseEvent(event, draft, errors),
    endOf: responseEnd,
    brokenOff,
  });
}

/** What counting and asking have in common. */
function prompt({ modelId, system, messages, tools = [] }: ChatRequest): {
  readonly model: string;
  readonly input: OpenAI.Responses.ResponseInputItem[];
  readonly instructions?: string;
  readonly tools?: OpenAI.Responses.FunctionTool[];
} {
  return {
    model: modelId,
    input: messages as OpenAI.Responses.ResponseInputItem[],
    ...(system === null || system === "" ? {} : { instructions: system }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, inputSchema }) => ({
            type: "function" as const,
            name,
            description,
            parameters: inputSchema as Record<string, unknown>,
            // Strict schemas are a subset of JSON Schema, which tools do not promise to keep to.
            strict: false,
          })),
        }),
  };
}

function responseBody(
  request: ChatRequest,
  reasons: boolean | null,
): OpenAI.Responses.ResponseCreateParamsNonStreaming {
  const effort = effortOf(request.thinkingLevel);
  const limit = request.maxOutputTokens ?? null;
  const isReasoning = reasons ?? (effort !== undefined || /^(?:o\d|gpt-(?:[5-9]|\d\d)|codex)/.test(request.modelId));
  return {
    ...prompt(request),
    store: false,
    ...(isReasoning ? { include: ["reasoning.encrypted_content"] } : {}),
    ...(effort === undefined ? {} : { reasoning: { effort, summary: "auto" } }),
    // The least the API takes is 16.
    ...(limit === null ? {} : { max_output_tokens: Math.max(16, limit) }),
  };
}
