import { isFields } from "@throughline/core/internal";
import type * as OpenAiSdk from "openai";
import type { OpenAI } from "openai";
import type { AnswerErrors } from "./answer-body.ts";
import { addressWithoutCredentials } from "./base-url.ts";
import { fetchWithoutLongWaits } from "./fetch-without-long-waits.ts";
import { loadSdk } from "./load-sdk.ts";
import type { ConnectionOptions } from "./model-options.ts";
import { assertClientAlone, readConnection } from "./read-connection.ts";

type OpenAiConnectionOptions = ConnectionOptions & {
  readonly client?: OpenAI | undefined;
  readonly maxRetries?: number | undefined;
  readonly timeoutMs?: number | undefined;
};

export interface OpenAiConnection {
  readonly sdk: typeof OpenAiSdk;
  readonly client: OpenAI;
}

export interface OpenAiConnector {
  /** Holds the server's address. Null selects OpenAI's own. */
  readonly address: string | null;
  /** All calls share one client. The first call creates it, because the SDK is loaded on first use. */
  readonly connect: () => Promise<OpenAiConnection>;
}

/**
 * Prepares the connection to a server. @throws {ThroughlineError} MODEL_KEY_MISSING, INPUT_INVALID if the options do
 * not allow a connection
 */
export function openAiConnector(options: OpenAiConnectionOptions): OpenAiConnector {
  const { client: given, maxRetries = 2, timeoutMs: timeout = 600_000 } = options;
  let made: Promise<OpenAiConnection> | null = null;
  const loadOpenAi = (): Promise<typeof OpenAiSdk> => loadSdk("openai", () => import("openai"));
  if (given !== undefined) {
    assertClientAlone("openai", options);
    return {
      address: given.baseURL,
      connect: () => (made ??= loadOpenAi().then((sdk) => ({ sdk, client: given }))),
    };
  }
  const { apiKey, baseUrl, headers, fetch } = readConnection("openai", options);
  const baseURL = addressWithoutCredentials(baseUrl ?? "https://api.openai.com/v1");
  const connect = async (): Promise<OpenAiConnection> => {
    const sdk = await loadOpenAi();
    const client = new sdk.OpenAI({
      // The SDK demands a key even if the server needs none. In that case `defaultHeaders` removes the header.
      apiKey: apiKey ?? "none",
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      baseURL,
      maxRetries,
      timeout,
      logLevel: "off",
      fetch: fetchWithoutLongWaits(fetch, maxRetries),
      defaultHeaders: { ...headers, ...(apiKey === null ? { Authorization: null } : {}) },
    });
    return { sdk, client };
  };
  return { address: baseUrl, connect: () => (made ??= connect()) };
}

export function openAiErrors({ sdk }: OpenAiConnection): AnswerErrors {
  return {
    failureOf: (body) =>
      new sdk.APIError(undefined, isFields(body["error"]) ? body["error"] : body, undefined, undefined),
    brokenOff: () => new sdk.APIConnectionError({ message: "The stream ended before the answer was complete." }),
  };
}

export function signalOf(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** Maps the thinking level to the provider's effort. Undefined leaves the effort to the provider. */
export function effortOf(level: string | undefined): OpenAI.ReasoningEffort | undefined {
  return level === undefined || level === "off" ? undefined : (level as OpenAI.ReasoningEffort);
}

/** Models before gpt-4o know no schema of an answer. An unknown name is assumed to be a new model. */
export function answersInJson(modelId: string): boolean {
  return !/^(?:gpt-3|gpt-4(?:$|-(?:\d|turbo|32k)))/.test(modelId);
}
