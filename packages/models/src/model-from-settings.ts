import { ThroughlineError, type ChatModel } from "@throughline/core";
import { createAnthropicModel } from "./create-anthropic-model.ts";
import { createOllamaModel } from "./create-ollama-model.ts";
import { createOpenAiChatModel } from "./create-openai-chat-model.ts";
import { createOpenAiResponsesModel } from "./create-openai-responses-model.ts";
import { missingKey } from "./missing-key.ts";
import { modelProviders } from "./model-providers.ts";
import { createOfflineModel } from "./offline-model.ts";

/** What configuration says of a provider's models. */
export interface ModelSettings {
  /** One of `modelProviders`, or any name together with `baseUrl` and, where it is not Chat Completions, `api`. */
  readonly provider: string;
  /** @default none */
  readonly apiKey?: string | null;
  /** @default the provider's own */
  readonly baseUrl?: string | null;
  /**
   * The wire format.
   * @default the provider's own; for `openai` its Responses API, and with a `baseUrl`, where nearly every server speaks it, Chat Completions
   */
  readonly api?: "anthropic" | "openai" | "openai-responses" | "ollama";
  /** Of the SDK. @default 2 */
  readonly maxRetries?: number;
  /** @default that of the adapter */
  readonly timeoutMs?: number;
  /** Ollama: the window to ask for. @default the server's */
  readonly contextTokens?: number;
  /** Sent with every request. @default {} */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * The models of a provider, by settings. Nothing is asked or loaded before the first call.
 * @throws {ThroughlineError} INPUT_INVALID for a name nobody knows, MODEL_KEY_MISSING at once
 */
export function modelFromSettings(settings: ModelSettings): ChatModel {
  const { provider, apiKey = null, maxRetries, timeoutMs, headers, contextTokens } = settings;
  const baseUrl = settings.baseUrl ?? null;
  const api = settings.api ?? usualApi(provider, baseUrl);
  if (api === "offline") return createOfflineModel();
  const known = modelProviders.find(({ name }) => name === provider);
  if (known?.needsKey === true && apiKey === null && baseUrl === null) {
    throw missingKey(provider, known.keyVariable ?? "");
  }
  const common = {
    provider,
    apiKey,
    ...(baseUrl === null ? {} : { baseUrl }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(headers === undefined ? {} : { headers }),
  };
  const retrying = { ...common, ...(maxRetries === undefined ? {} : { maxRetries }) };
  if (api === "anthropic") return createAnthropicModel(retrying);
  if (api === "openai") return createOpenAiChatModel(retrying);
  if (api === "openai-responses") return createOpenAiResponsesModel(retrying);
  return createOllamaModel({ ...common, ...(contextTokens === undefined ? {} : { contextTokens }) });
}

function usualApi(provider: string, baseUrl: string | null): NonNullable<ModelSettings["api"]> | "offline" {
  if (provider === "anthropic" || provider === "ollama" || provider === "offline") return provider;
  if (provider === "openai") return baseUrl === null ? "openai-responses" : "openai";
  if (baseUrl !== null) return "openai";
  const names = modelProviders.map(({ name }) => name).join(", ");
  throw new ThroughlineError("INPUT_INVALID", `No provider is called ${JSON.stringify(provider)}.`, {
    details: { provider },
    remedy: `Use one of ${names}, or give the baseUrl of a server that speaks Chat Completions.`,
  });
}
