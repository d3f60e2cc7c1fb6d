import type { ChatModel } from "@throughline/core";
import { anthropic } from "@throughline/models/anthropic";
import { ollama } from "@throughline/models/ollama";
import { openai } from "@throughline/models/openai";
import type { ProviderSimulator, ReceivedRequest } from "@throughline/testing";

/** A provider's SDK against the simulator. */
export interface ProviderCase {
  readonly name: string;
  readonly modelId: string;
  create(simulator: ProviderSimulator): ChatModel;
  /** The messages of a request, as they came. */
  messagesOf(request: ReceivedRequest): unknown;
}

const apiKey = "any";
const field =
  (name: string) =>
  ({ body }: ReceivedRequest): unknown =>
    (body as Readonly<Record<string, unknown>>)[name];

/** Without retries of their own, so that every request is one call. */
export const providerCases: readonly ProviderCase[] = [
  {
    name: "Anthropic",
    modelId: "claude-opus-5-5",
    create: ({ url }) => anthropic("claude-opus-5", { apiKey, baseUrl: url, maxRetries: 0 }).chat,
    messagesOf: field("messages"),
  },
  {
    name: "OpenAI chat completions",
    modelId: "gpt-4o",
    create: ({ url }) => openai("gpt-5", { api: "openai", apiKey, baseUrl: `${url}/v1`, maxRetries: 0 }).chat,
    messagesOf: field("messages"),
  },
  {
    name: "OpenAI Responses",
    modelId: "gpt-5",
    create: ({ url }) => openai("gpt-5", { api: "openai-responses", apiKey, baseUrl: `${url}/v1`, maxRetries: 0 }).chat,
    messagesOf: field("input"),
  },
  {
    name: "Ollama",
    modelId: "qwen3",
    create: ({ url }) => ollama("qwen3", { baseUrl: url, windowTokens: 500_000 }).chat,
    messagesOf: field("messages"),
  },
];
