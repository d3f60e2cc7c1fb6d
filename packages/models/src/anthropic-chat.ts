import type * as AnthropicSdk from "@anthropic-ai/sdk";
import type { Anthropic } from "@anthropic-ai/sdk";
import type { ChatModel, ChatReply, ChatRequest } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import {
  assertArgument,
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  wireToolChoices,
} from "@throughline/core/internal";
import { anthropicEnd, takeAnthropicEvent, takeAnthropicMessage } from "./anthropic-reply.ts";
import { answersInJson, anthropicPrompt, anthropicRequest, type AnthropicRequestStyle } from "./anthropic-request.ts";
import { streamedEvents, type AnswerErrors } from "./answer-body.ts";
import { addressWithoutCredentials } from "./base-url.ts";
import { collectReply } from "./collect-reply.ts";
import { fetchWithoutLongWaits, waitOptions } from "./fetch-without-long-waits.ts";
import { isUnknownModel } from "./is-unknown-model.ts";
import { loadSdk } from "./load-sdk.ts";
import {
  connectionKinds,
  limitKinds,
  retryKinds,
  sessionModel,
  type ConnectionOptions,
  type LimitOptions,
} from "./model-options.ts";
import { assertClientAlone, readConnection } from "./read-connection.ts";
import { ReplyDraft } from "./reply-draft.ts";
import { takesImagesByName } from "./takes-images.ts";

/** Configures `anthropic`. */
export interface AnthropicModelOptions extends LimitOptions, ConnectionOptions {
  /**
   * Sets a client of `@anthropic-ai/sdk`, which brings its own key, address, headers and retries. @default a client
   * created from the other options
   */
  readonly client?: Anthropic | undefined;
  /**
   * Limits the retries of the SDK. It retries failed connections and the status codes 408, 409, 429 and 5xx, if the
   * wait is at most a minute. @default 2
   */
  readonly maxRetries?: number | undefined;
  /** Sets the timeout of each attempt, in milliseconds. @default 600000 */
  readonly timeoutMs?: number | undefined;
  /**
   * Sets how long the provider caches the prompt for the next call. Use `off` for servers that reject the field.
   * @default "5m"
   */
  readonly promptCache?: "5m" | "1h" | "off" | undefined;
}

const table: OptionTable<AnthropicModelOptions> = {
  ...limitKinds,
  ...connectionKinds,
  ...retryKinds,
  client: optionKinds.objectWith("post"),
  promptCache: optionKinds.oneOf(["5m", "1h", "off"]),
};

const tenMinutesMs = 600_000;
/** The API requires a limit, so this value applies if the caller sets none. Thinking tokens are added to it. */
const usualOutputTokens = 8192;

/**
 * Creates a model of Anthropic, or of a server that speaks the Messages API. The first call loads `@anthropic-ai/sdk`.
 *
 * @param modelId the model's name at the provider
 * @param options `apiKey` defaults to `ANTHROPIC_API_KEY` and `baseUrl` to `ANTHROPIC_BASE_URL`
 * @returns the `model` option of `createSessions`; its `chat` can also be called directly. Calls throw
 * MODEL_SDK_MISSING, ABORTED, and the SDK's errors
 * @throws {ThroughlineError} MODEL_KEY_MISSING, INPUT_INVALID; no request was sent
 * @example
 * const sessions = createSessions({ store, model: anthropic("claude-sonnet-5", { maxOutputTokens: 4000 }) });
 */
export function anthropic(modelId: string, options: AnthropicModelOptions = {}): SessionModel {
  assertKnownOptions<AnthropicModelOptions>("anthropic", options, table);
  assertArgument("anthropic", "modelId", modelId, optionKinds.filledText);
  return sessionModel(anthropicChat(options), modelId, options);
}

function anthropicChat(options: AnthropicModelOptions): ChatModel {
  const { provider = "anthropic", promptCache = "5m", client } = options;
  const timeout = options.timeoutMs ?? client?.timeout ?? tenMinutesMs;
  const style: AnthropicRequestStyle = {
    defaultMaxOutputTokens: options.maxOutputTokens ?? usualOutputTokens,
    promptCache,
  };
  const connect = connector(options, timeout);
  return {
    provider,
    api: "anthropic",
    toolChoices: wireToolChoices.anthropic,
    acceptsOutput: answersInJson,
    takesImages: async (modelId) => takesImagesByName("anthropic", modelId),
    chat: async (request) => askAnthropic(request, await connect(), { provider, style, timeout }),
    async countTokens(request): Promise<number> {
      const { client: connected } = await connect();
      const counted = await connected.messages.countTokens(anthropicPrompt(request), signalOf(request.signal));
      return counted.input_tokens;
    },
    async windowTokens(modelId, signal): Promise<number | null> {
      const { client: connected } = await connect();
      try {
        const found: { readonly max_input_tokens?: unknown } = await connected.models.retrieve(
          modelId,
          {},
          signalOf(signal),
        );
        // A gateway may describe a model in another provider's format, which lacks this field.
        return typeof found.max_input_tokens === "number" ? found.max_input_tokens : null;
      } catch (error) {
        if (isUnknownModel(error)) return null;
        throw error;
      }
    },
  };
}

interface Connected {
  readonly sdk: typeof AnthropicSdk;
  readonly client: Anthropic;
}

/**
 * Returns a function that creates one client at the first call and shares it.
 * @throws {ThroughlineError} at once if the options do not allow a connection
 */
function connector(options: AnthropicModelOptions, timeout: number): () => Promise<Connected> {
  const { client: given, maxRetries = 2 } = options;
  let made: Promise<Connected> | null = null;
  const loadAnthropic = (): Promise<typeof AnthropicSdk> =>
    loadSdk("@anthropic-ai/sdk", () => import("@anthropic-ai/sdk"));
  if (given !== undefined) {
    assertClientAlone("anthropic", options);
    return () => (made ??= loadAnthropic().then((sdk) => ({ sdk, client: given })));
  }
  const { apiKey, baseUrl, headers, fetch } = readConnection("anthropic", options);
  const baseURL = addressWithoutCredentials(baseUrl ?? "https://api.anthropic.com");
  const connect = async (): Promise<Connected> => {
    const sdk = await loadAnthropic();
    const client = new sdk.Anthropic({
      apiKey,
      authToken: null,
      webhookKey: null,
      baseURL,
      maxRetries,
      timeout,
      logLevel: "off",
      fetch: fetchWithoutLongWaits(fetch, maxRetries),
      // Without a key the SDK demands an explicit null for both headers, which states that the omission is intended.
      defaultHeaders: { ...headers, ...(apiKey === null ? { "X-Api-Key": null, Authorization: null } : {}) },
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
  { sdk, client }: Connected,
  { provider, style, timeout }: Asking,
): Promise<ChatReply> {
  const { modelId, onDelta, signal } = request;
  const draft = new ReplyDraft({ api: "anthropic-messages", provider, model: modelId }, onDelta ?? null);
  const body = anthropicRequest(request, style);
  const how = { ...signalOf(signal), ...waitOptions(request), timeout };
  // `messages.create` sends the same request, but prints warnings about old models to the console.
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
