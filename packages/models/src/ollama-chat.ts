import type { ChatModel, ChatReply, ChatRequest, RandomSource } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import {
  assertArgument,
  assertKnownOptions,
  isFields,
  optionKinds,
  outputFields,
  type OptionTable,
  systemRandom,
  wireToolChoices,
} from "@throughline/core/internal";
import type { ChatRequest as OllamaRequest, Message, Ollama, Tool } from "ollama";
import { plainAddress } from "./base-url.ts";
import { callIds } from "./call-ids.ts";
import { assertNotAborted, collectReply } from "./collect-reply.ts";
import {
  connectionKinds,
  limitKinds,
  retryKinds,
  sessionModel,
  type ConnectionOptions,
  type LimitOptions,
} from "./model-options.ts";
import { withSystem } from "./openai-completions.ts";
import { readConnection } from "./read-connection.ts";
import { isUnknownModel } from "./is-unknown-model.ts";
import { loadSdk } from "./load-sdk.ts";
import { ollamaFetch } from "./ollama-fetch.ts";
import { ollamaEnd, takeOllamaResponse } from "./ollama-reply.ts";
import { ollamaWindow, ollamaWindowFacts } from "./ollama-window.ts";
import { ReplyDraft } from "./reply-draft.ts";
import { takesImagesByCapabilities } from "./takes-images.ts";

/** Configures `ollama`. */
export interface OllamaModelOptions extends Omit<LimitOptions, "windowTokens">, ConnectionOptions {
  /**
   * Sets the window in tokens that each request asks for (`num_ctx`). It is limited to the length that the model was
   * trained for. Without this option the server's own setting applies, which may be as small as 4,096. The server
   * reloads a model when the window changes. @default the server's
   */
  readonly windowTokens?: number | null | undefined;
  /**
   * Limits the time from the request to the end of the answer, in milliseconds. Loading a model counts. @default none
   */
  readonly timeoutMs?: number | undefined;
  /** Sets how long the server keeps the model loaded, in the server's notation, such as "30m". @default the server's */
  readonly keepAlive?: string | undefined;
  /** Creates the ids of calls to which the server assigns none. @default the system's */
  readonly random?: RandomSource | undefined;
}

const table: OptionTable<OllamaModelOptions> = {
  ...limitKinds,
  ...connectionKinds,
  timeoutMs: retryKinds.timeoutMs,
  keepAlive: optionKinds.filledText,
  random: optionKinds.objectWith("uuid"),
};

/**
 * Creates a model of an Ollama server. The first call loads the package `ollama`, which never retries. The server
 * rejects a prompt over the window instead of cutting it (`truncate` and `shift` are off).
 *
 * @param modelId the model's name at the server
 * @param options `baseUrl` defaults to `OLLAMA_HOST`, else to http://127.0.0.1:11434; `apiKey`, for servers behind a
 * gateway, defaults to `OLLAMA_API_KEY`
 * @returns the `model` option of `createSessions`; its `chat` can also be called directly. Calls throw
 * MODEL_SDK_MISSING, ABORTED, and the SDK's errors
 * @throws {ThroughlineError} INPUT_INVALID; no request was sent
 * @example
 * const model = ollama("qwen3:8b", { windowTokens: 32_768 });
 */
export function ollama(modelId: string, options: OllamaModelOptions = {}): SessionModel {
  assertKnownOptions<OllamaModelOptions>("ollama", options, table);
  assertArgument("ollama", "modelId", modelId, optionKinds.filledText);
  const { windowTokens = null, assumedWindowTokens, ...limits } = options;
  // The server reports the window of a request. The configured window applies only if the server reports none.
  const assumedTokens = assumedWindowTokens ?? windowTokens;
  const sessionLimits = assumedTokens === null ? limits : { ...limits, assumedWindowTokens: assumedTokens };
  return sessionModel(ollamaChat(options), modelId, sessionLimits);
}

function ollamaChat(options: OllamaModelOptions): ChatModel {
  const { provider = "ollama", windowTokens = null, keepAlive, timeoutMs = null, random = systemRandom } = options;
  const connection = readConnection("ollama", options);
  const { url, authorization } = plainAddress(connection.baseUrl ?? "http://127.0.0.1:11434");
  const credentials = connection.apiKey === null ? authorization : `Bearer ${connection.apiKey}`;
  const headers = { ...connection.headers, ...(credentials === null ? {} : { Authorization: credentials }) };
  const server: OllamaServer = { url, headers, fetch: connection.fetch, timeoutMs };
  const nextCallId = callIds(random);
  return {
    provider,
    api: "ollama",
    toolChoices: wireToolChoices.ollama,
    // A schema constrains every token of the answer, so a model with one cannot call tools.
    acceptsOutput: ({ tools = [] }) => tools.length === 0,
    chat: (request) => askOllama(request, server, { provider, nextCallId, windowTokens, keepAlive: keepAlive ?? null }),
    windowTokens: (modelId, signal) =>
      factsOf(server, signal, async (client) => {
        const [show, ps] = await Promise.all([client.show({ model: modelId }), client.ps()]);
        return ollamaWindow(ollamaWindowFacts(modelId, show, ps), windowTokens);
      }),
    takesImages: (modelId, signal) =>
      factsOf(server, signal, async (client) => takesImagesByCapabilities(await client.show({ model: modelId }))),
  };
}

/** Asks the server about a model; null for one that the server does not have. */
async function factsOf<Facts>(
  server: OllamaServer,
  signal: AbortSignal | undefined,
  ask: (client: Ollama) => Promise<Facts | null>,
): Promise<Facts | null> {
  assertNotAborted(signal);
  const client = await createClient(server, { isStream: false }, signal);
  try {
    return await ask(client);
  } catch (error) {
    assertNotAborted(signal);
    if (isUnknownModel(error)) return null;
    throw error;
  }
}

interface OllamaServer {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof globalThis.fetch | undefined;
  readonly timeoutMs: number | null;
}

interface RequestSettings {
  readonly provider: string;
  readonly nextCallId: () => string;
  readonly windowTokens: number | null;
  readonly keepAlive: string | null;
}

/**
 * Creates a client per call, because the SDK cannot abort a single request of a shared client. A client holds no state
 * worth keeping.
 */
async function createClient(
  { url, headers, fetch, timeoutMs }: OllamaServer,
  { isStream }: { readonly isStream: boolean },
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<Ollama> {
  const { Ollama: Client } = await loadSdk("ollama", () => import("ollama"));
  const optionalSignals = [...signals, timeoutMs === null ? undefined : AbortSignal.timeout(timeoutMs)];
  const presentSignals = optionalSignals.filter((one) => one !== undefined);
  const signal = presentSignals.length === 0 ? undefined : AbortSignal.any(presentSignals);
  return new Client({ host: url, headers, fetch: ollamaFetch(isStream, signal, fetch) });
}

function askOllama(request: ChatRequest, server: OllamaServer, settings: RequestSettings): Promise<ChatReply> {
  const { modelId, onDelta, signal } = request;
  const identity = { api: "ollama", provider: settings.provider, model: modelId };
  const draft = new ReplyDraft(identity, onDelta ?? null, settings.nextCallId);
  const body = ollamaBody(request, settings);
  // The SDK leaves the connection open if its reader stops early, so the end of the answer aborts it.
  const answerEnded = new AbortController();
  const answer = collectReply({
    request,
    draft,
    async open() {
      const client = await createClient(server, { isStream: onDelta !== undefined }, signal, answerEnded.signal);
      return onDelta === undefined
        ? [await client.chat({ ...body, stream: false })]
        : await client.chat({ ...body, stream: true });
    },
    take: (response) => takeOllamaResponse(response, draft),
    endOf: ollamaEnd,
    // The SDK itself throws if the last line is missing; this error repeats its message.
    brokenOff: () => new Error("Did not receive done or success response in stream."),
  });
  return answer.finally(() => answerEnded.abort());
}

function ollamaBody(
  {
    modelId,
    system,
    messages,
    tools = [],
    toolChoice,
    output,
    maxOutputTokens = null,
    thinkingLevel = "off",
  }: ChatRequest,
  { windowTokens, keepAlive }: RequestSettings,
): Omit<OllamaRequest, "stream"> & { readonly truncate: false; readonly shift: false } {
  const bodyOptions = {
    ...(windowTokens === null ? {} : { num_ctx: windowTokens }),
    ...(maxOutputTokens === null ? {} : { num_predict: maxOutputTokens }),
  };
  return {
    model: modelId,
    messages: withSystem(system, messages).map(copyIfImages) as Message[],
    truncate: false,
    shift: false,
    think: thinkSetting(modelId, thinkingLevel),
    ...(tools.length === 0 || toolChoice === "none" ? {} : { tools: tools.map(ollamaTool) }),
    ...(output === undefined ? {} : outputFields("ollama", output)),
    ...(Object.keys(bodyOptions).length === 0 ? {} : { options: bodyOptions }),
    ...(keepAlive === null ? {} : { keep_alive: keepAlive }),
  };
}

/** Copies a message that has images: the SDK replaces its `images`, and the message belongs to the caller. */
function copyIfImages(message: unknown): unknown {
  return isFields(message) && message["images"] !== undefined ? { ...message } : message;
}

/** Most models accept only on or off. The model gpt-oss always thinks and accepts a level. */
function thinkSetting(modelId: string, level: string): boolean | "high" | "medium" | "low" {
  if (level === "off") return false;
  if (!modelId.includes("gpt-oss")) return true;
  return level === "high" || level === "medium" ? level : "low";
}

function ollamaTool({ name, description, inputSchema }: NonNullable<ChatRequest["tools"]>[number]): Tool {
  return {
    type: "function",
    function: { name, description, parameters: inputSchema as Tool["function"]["parameters"] & object },
  };
}
