import type * as AnthropicSdk from "@anthropic-ai/sdk";
import type { Anthropic } from "@anthropic-ai/sdk";
import type { ChatModel, ChatReply, ChatRequest } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import { assertArgument, assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { anthropicEnd, takeAnthropicEvent, takeAnthropicMessage } from "./anthropic-reply.ts";
import { anthropicPrompt, anthropicRequest, type AnthropicRequestStyle } from "./anthropic-request.ts";
import { streamedEvents, type AnswerErrors } from "./answer-body.ts";
import { addressWithoutCredentials } from "./base-url.ts";
import { collectReply } from "./collect-reply.ts";
import { fetchWithoutLongWaits } from "./fetch-without-long-waits.ts";
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

/** Options of `anthropic`. */
export interface AnthropicModelOptions extends LimitOptions, ConnectionOptions {
  /** A client of `@anthropic-ai/sdk`, with its own key, address, headers and retries. @default one that is made of the other options */
  readonly client?: Anthropic;
  /** Repeats by the SDK, of failed connections and of 408, 409, 429 and 5xx whose wait is at most a minute. @default 2 */
  readonly maxRetries?: number;
  /** For each attempt, in milliseconds. @default 600000 */
  readonly timeoutMs?: number;
  /** How long the provider keeps the prompt for the next call; `off` for servers that do not know the field. @default "5m" */
  readonly promptCache?: "5m" | "1h" | "off";
}

const table: OptionTable<AnthropicModelOptions> = {
  ...limitKinds,
  ...connectionKinds,
  ...retryKinds,
  client: optionKinds.objectWith("post"),
  promptCache: optionKinds.oneOf(["5m", "1h", "off"]),
};

const tenMinutesMs = 600_000;
/** The API wants a limit where the caller leaves it to the provider. Thinking comes on top of it. */
const usualOutputTokens = 8192;

/**
 * A model of Anthropic, or of a server that speaks the Messages API. `@anthropic-ai/sdk` is loaded with the first call.
 *
 * @param modelId the model's name at the provider
 * @param options the key is read from `ANTHROPIC_API_KEY` and the address from `ANTHROPIC_BASE_URL` where they are not given
 * @returns what `createSessions({ model })` takes; its `chat` asks the model by itself. Calls throw MODEL_SDK_MISSING, ABORTED, and the SDK's errors
 * @throws {ThroughlineError} MODEL_KEY_MISSING, INPUT_INVALID; nothing was asked then
 * @example
 * const sessions = createSessions({ store, model: anthropic("claude-sonnet-4-5", { maxOutputTokens: 4000 }) });
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
        // A gateway may describe a model in the words of another provider.
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

/** One client for all calls, made at the first. @throws {ThroughlineError} at once, for a connection that cannot be made */
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
      fetch: fetchWithoutLongWaits(fetch),
      // A server without keys: the SDK wants to be told that the header is left out on purpose.
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
