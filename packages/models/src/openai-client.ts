import { isFields } from "@throughline/core/internal";
import type * as OpenAiSdk from "openai";
import type { OpenAI } from "openai";
import type { AnswerErrors } from "./answer-body.ts";
import { addressWithoutCredentials } from "./base-url.ts";
import { fetchWithoutLongWaits } from "./fetch-without-long-waits.ts";
import { loadSdk } from "./load-sdk.ts";
import type { ConnectionOptions } from "./model-options.ts";
import { assertClientAlone, readConnection } from "./read-connection.ts";

/** The options that say how a server is reached. */
type OpenAiConnectionOptions = ConnectionOptions & {
  readonly client?: OpenAI;
  readonly maxRetries?: number;
  readonly timeoutMs?: number;
};

export interface OpenAiConnection {
  readonly sdk: typeof OpenAiSdk;
  readonly client: OpenAI;
}

export interface OpenAiConnector {
  /** Null: OpenAI's own. */
  readonly address: string | null;
  /** One client for all calls, made at the first. */
  readonly connect: () => Promise<OpenAiConnection>;
}

/** @throws {ThroughlineError} MODEL_KEY_MISSING, INPUT_INVALID for a connection that cannot be made */
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
      // The SDK wants one even where the server does not; the header is left out then.
      apiKey: apiKey ?? "none",
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      baseURL,
      maxRetries,
      timeout,
      logLevel: "off",
      fetch: fetchWithoutLongWaits(fetch),
      defaultHeaders: { ...headers, ...(apiKey === null ? { Authorization: null } : {}) },
    });
    return { sdk, client };
  };
  return { address: baseUrl, connect: () => (made ??= connect()) };
}

/** The SDK's errors of what it takes for an answer. */
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

/** The word for how hard a model is to think; absent leaves it to the provider. */
export function effortOf(level: string | undefined): OpenAI.ReasoningEffort | undefined {
  return level === undefined || level === "off" ? undefined : (level as OpenAI.ReasoningEffort);
}
