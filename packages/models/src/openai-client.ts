import type * as OpenAiSdk from "openai";
import type { OpenAI } from "openai";
import type { AnswerErrors } from "./answer-body.ts";
import { addressWithoutCredentials } from "./base-url.ts";
import { fetchWithoutLongWaits } from "./fetch-without-long-waits.ts";
import { assertHeaderValues } from "./header-values.ts";
import { loadSdk } from "./load-sdk.ts";
import { missingKey } from "./missing-key.ts";
import { isFields } from "./wire-fields.ts";

/** How a server that speaks one of OpenAI's formats is reached. */
export interface OpenAiConnectionOptions {
  /** @default none; then `client`, or `baseUrl` of a server that wants no key, has to be given */
  readonly apiKey?: string | null;
  /** With its `/v1`, where the server has one. @default OpenAI's own */
  readonly baseUrl?: string;
  /** A client of `openai`, with all its settings. The other settings of the connection do not apply then. */
  readonly client?: OpenAI;
  /** Of the SDK, for failed connections and for 408, 409, 429 and 5xx whose wait is a minute at most. @default 2 */
  readonly maxRetries?: number;
  /** For each attempt. @default 600000 */
  readonly timeoutMs?: number;
  /** Sent with every request. @default {} */
  readonly headers?: Readonly<Record<string, string>>;
  /** The name in records; that of the server where it is not OpenAI's. @default "openai" */
  readonly provider?: string;
}

export interface OpenAiConnection {
  readonly sdk: typeof OpenAiSdk;
  readonly client: OpenAI;
}

/** One client for all calls, made at the first. */
export function openAiConnector(options: OpenAiConnectionOptions): () => Promise<OpenAiConnection> {
  let made: Promise<OpenAiConnection> | null = null;
  const connect = async (): Promise<OpenAiConnection> => {
    const sdk = await loadSdk("openai", () => import("openai"));
    if (options.client !== undefined) return { sdk, client: options.client };
    const apiKey = options.apiKey ?? null;
    if (apiKey === null && options.baseUrl === undefined) throw missingKey("openai", "OPENAI_API_KEY");
    assertHeaderValues(apiKey, options.headers);
    const client = new sdk.OpenAI({
      // The SDK wants one even where the server does not; the header is left out then.
      apiKey: apiKey ?? "none",
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      baseURL: addressWithoutCredentials(options.baseUrl ?? "https://api.openai.com/v1"),
      maxRetries: options.maxRetries ?? 2,
      timeout: options.timeoutMs ?? 600_000,
      logLevel: "off",
      fetch: fetchWithoutLongWaits(),
      defaultHeaders: { ...options.headers, ...(apiKey === null ? { Authorization: null } : {}) },
    });
    return { sdk, client };
  };
  return () => (made ??= connect());
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
