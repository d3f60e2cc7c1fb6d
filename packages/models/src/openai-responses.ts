import type OpenAI from "openai";
import type { ChatModel, ChatReply, ChatRequest } from "@throughline/core";
import { outputFields, toolChoiceFields, wireToolChoices } from "@throughline/core/internal";
import { streamedEvents } from "./answer-body.ts";
import { collectReply } from "./collect-reply.ts";
import { waitOptions } from "./fetch-without-long-waits.ts";
import { answersInJson, effortOf, openAiErrors, signalOf, type OpenAiConnection } from "./openai-client.ts";
import { responseEnd, takeResponse, takeResponseEvent } from "./openai-responses-reply.ts";
import { ReplyDraft } from "./reply-draft.ts";
import { takesImagesByName } from "./takes-images.ts";

/**
 * Creates a model behind the Responses API. The provider stores nothing (`store: false`), so reasoning arrives
 * encrypted and returns with the next request.
 */
export function openAiResponses(
  connect: () => Promise<OpenAiConnection>,
  { provider, reasons }: { readonly provider: string; readonly reasons: boolean | null },
): ChatModel {
  return {
    provider,
    api: "openai-responses",
    toolChoices: wireToolChoices["openai-responses"],
    acceptsOutput: ({ modelId }) => answersInJson(modelId),
    takesImages: async (modelId) => takesImagesByName("openai", modelId),
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
  const how = { ...signalOf(request.signal), ...waitOptions(request) };
  if (onDelta === undefined) {
    return collectReply({
      request,
      draft,
      // This sends the same request as `responses.create`, which throws an error of its own if the body is not a
      // response.
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

function prompt({ modelId, system, messages, tools = [], toolChoice, output }: ChatRequest): {
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
            // Strict schemas are a subset of JSON Schema. Tools may use all of JSON Schema, so strict mode is off.
            strict: false,
          })),
        }),
    ...(toolChoice === undefined || tools.length === 0 ? {} : toolChoiceFields("openai-responses", toolChoice)),
    ...(output === undefined ? {} : outputFields("openai-responses", output)),
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
    // The API rejects limits below 16, so a smaller limit is raised.
    ...(limit === null ? {} : { max_output_tokens: Math.max(16, limit) }),
  };
}
