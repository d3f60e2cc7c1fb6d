import type * as AnthropicSdk from "@anthropic-ai/sdk";
import type { Anthropic } from "@anthropic-ai/sdk";
import type { ChatModel, ChatReply, ChatRequest } from "@throughline/core";
import { anthropicEnd, takeAnthropicEvent, takeAnthropicMessage } from "./anthropic-reply.ts";
import { anthropicPrompt, anthropicRequest, type AnthropicRequestStyle } from "./anthropic-request.ts";
import { streamedEvents, type AnswerErrors } from "./answer-body.ts";
import { addressWithoutCredentials } from "./base-url.ts";
import { collectReply } from "./collect-reply.ts";
import { fetchWithoutLongWaits } from "./fetch-without-long-waits.ts";
import { assertHeaderValues } from "./header-values.ts";
import { isUnknownModel } from "./is-unknown-model.ts";
import { loadSdk } from "./load-sdk.ts";
import { missingKey } from "./missing-key.ts";
import { ReplyDraft } from "./reply-draft.ts";

export interface AnthropicModelOptions {
  /** @default none; then `client`, or `baseUrl` of a server that wants no key, has to be given */
  readonly apiKey?: string | null;
  /** @default Anthropic's own */
  readonly baseUrl?: string;
  /** A client of `@anthropic-ai/sdk`, with all its settings. The other settings of the connection do not apply then. */
  readonly client?: Anthropic;
  /** Of the SDK, for failed connections and for 408, 409, 429 and 5xx whose wait is a minute at most. @default 2 */
  readonly maxRetries?: number;
  /** For each attempt. @default 600000 */
  readonly timeoutMs?: number;
  /** Sent with every request, such as `anthropic-beta`. @default {} */
  readonly headers?: Readonly<Record<string, string>>;
  /** What is asked for when a request names no limit: the API wants one. Thinking comes on top. @default 8192 */
  readonly defaultMaxOutputTokens?: number;
  /** How long the provider is to keep the prompt for the next call; `off` for servers that do not know the field. @default "5m" */
  readonly promptCache?: "5m" | "1h" | "off";
  /** The name in records, for servers of others that speak this format. @default "anthropic" */
  readonly provider?: string;
}

const tenMinutesMs = 600_000;

/**
 * Claude, through Anthropic's Messages API. Nothing is asked or loaded before the first call.
 * @throws {ThroughlineError} from its functions: MODEL_SDK_MISSING, MODEL_KEY_MISSING, ABORTED; else the SDK's errors
 */
export function createAnthropicModel(options: AnthropicModelOptions = {}): ChatModel {
  const provider = options.provider ?? "anthropic";
  const timeout = options.timeoutMs ?? options.client?.timeout ?? tenMinutesMs;
  const style: AnthropicRequestStyle = {
    defaultMaxOutputTokens: options.defaultMaxOutputTokens ?? 8192,
    promptCache: options.promptCache ?? "5m",
  };
  const connect = connector(options, timeout);
  return {
    provider,
    api: "anthropic",
    chat: async (request) => askAnthropic(request, await connect(), { provider, style, timeout }),
    async countTokens(request): Promise<number> {
      const { client } = await connect();
      const counted = await client.messages.countTokens(anthropicPrompt(request), signalOf(request.signal));
      return counted.input_tokens;
    },
    async windowTokens(model, signal): Promise<number | null> {
      const { client } = await connect();
      try {
        return (await client.models.retrieve(model, {}, signalOf(signal))).max_input_tokens;
      } catch (error) {
        if (isUnknownModel(error)) return null;
        throw error;
      }
    },
  };
}

interface Connection {
  readonly sdk: typeof AnthropicSdk;
  readonly client: Anthropic;
}

/** One client for all calls, made at the first. */
function connector(options: AnthropicModelOptions, timeout: number): () => Promise<Connection> {
  let made: Promise<Connection> | null = null;
  const connect = async (): Promise<Connection> => {
    const sdk = await loadSdk("@anthropic-ai/sdk", () => import("@anthropic-ai/sdk"));
    if (options.client !== undefined) return { sdk, client: options.client };
    const apiKey = options.apiKey ?? null;
    if (apiKey === null && options.baseUrl === undefined) throw missingKey("anthropic", "ANTHROPIC_API_KEY");
    assertHeaderValues(apiKey, options.headers);
    const client = new sdk.Anthropic({
      apiKey,
      authToken: null,
      webhookKey: null,
      baseURL: addressWithoutCredentials(options.baseUrl ?? "https://api.anthropic.com"),
      maxRetries: options.maxRetries ?? 2,
      timeout,
      logLevel: "off",
      fetch: fetchWithoutLongWaits(),
      // A server without keys: the SDK wants to be told that the header is left out on purpose.
      defaultHeaders: { ...options.headers, ...(apiKey === null ? { "X-Api-Key": null, Authorization: null } : {}) },
    });
    return { sdk, client };
  };
  return () => (made ??= connect());
}

interface Asking {
  readonly provider: string;
  readonly style: AnthropicRequestStyle;
  readonly timeout: number;
}

function askAnthropic(
  request: ChatRequest,
  { sdk, client }: Connection,
  { provider, style, timeout }: Asking,
): Promise<ChatReply> {
  const { model, onDelta, signal } = request;
  const draft = new ReplyDraft({ api: "anthropic-messages", provider, model }, onDelta ?? null);
  const body = anthropicRequest(request, style);
  const how = { ...signalOf(signal), timeout };
  // Not `messages.create`, which warns of old models on the console; this is the request it makes.
  const path = "/v1/messages";
  const errors: AnswerErrors = {
    failureOf: (answer) => new sdk.APIError(undefined, answer, undefined, undefined),
    brokenOff: () => new sdk.APIConnectionError({ message: "The stream ended before the answer was complete." }),
  };
  const { brokenOff } = errors;
  if (onDelta === undefined) {
    return collectReply({
      request,
      draft,
      open: async () => [await client.post<unknown>(path, { body, ...how })],
      take: (message) => takeAnthropicMessage(message, draft, errors),
      endOf: anthropicEnd,
      brokenOff,
    });
  }
  return collectReply({
    request,
    draft,
    open: async () =>
      streamedEvents(
        client.post<AsyncIterable<Anthropic.RawMessageStreamEvent>>(path, {
          body: { ...body, stream: true },
          stream: true,
          ...how,
        }),
        (text) => takeAnthropicMessage(text, draft, errors),
      ),
    take: (event) => takeAnthropicEvent(event, draft),
    endOf: anthropicEnd,
    brokenOff,
  });
}

function signalOf(signal: AbortSignal | undefined): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}
