import type { ChatModel, ChatReply, ChatRequest, RandomSource } from "@throughline/core";
import type { SessionModel } from "@throughline/core/internal";
import {
  assertArgument,
  assertKnownOptions,
  isFields,
  optionKinds,
  type OptionTable,
  systemRandom,
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

/** Options of `ollama`. */
export interface OllamaModelOptions extends Omit<LimitOptions, "windowTokens">, ConnectionOptions {
  /**
   * The window, in tokens, that each request asks for (`num_ctx`), at most what the model was trained for. Without it the
   * server's own setting holds, which may be as small as 4,096. The server loads a model again when it changes. @default the server's
   */
  readonly windowTokens?: number | null;
  /** From the request to the end of the answer, in milliseconds; loading a model counts. @default none */
  readonly timeoutMs?: number;
  /** How long the server keeps the model loaded, in its own words, such as "30m". @default the server's */
  readonly keepAlive?: string;
  /** For the ids of calls that a server gives none. @default the system's */
  readonly random?: RandomSource;
}

const table: OptionTable<OllamaModelOptions> = {
  ...limitKinds,
  ...connectionKinds,
  timeoutMs: retryKinds.timeoutMs,
  keepAlive: optionKinds.filledText,
  random: optionKinds.objectWith("uuid"),
};

/**
 * A model of an Ollama server. The package `ollama` is loaded with the first call; it repeats nothing. A prompt over the
 * window is refused instead of cut (`truncate` and `shift` are off).
 *
 * @param modelId the model's name at the server
 * @param options the address is read from `OLLAMA_HOST` and the key, for servers behind a gate, from `OLLAMA_API_KEY` where
 *   they are not given; the default address is http://127.0.0.1:11434
 * @returns what `createSessions({ model })` takes; its `chat` asks the model by itself. Calls throw MODEL_SDK_MISSING, ABORTED, and the SDK's errors
 * @throws {ThroughlineError} INPUT_INVALID; nothing was asked then
 * @example
 * const model = ollama("qwen3:8b", { windowTokens: 32_768 });
 */
export function ollama(modelId: string, options: OllamaModelOptions = {}): SessionModel {
  assertKnownOptions<OllamaModelOptions>("ollama", options, table);
  assertArgument("ollama", "modelId", modelId, optionKinds.filledText);
  const { windowTokens = null, assumedWindowTokens, ...limits } = options;
  // The server says which window a request gets; what was asked for counts where it cannot be asked.
  const assumed = assumedWindowTokens ?? windowTokens;
  const known = assumed === null ? limits : { ...limits, assumedWindowTokens: assumed };
  return sessionModel(ollamaChat(options), modelId, known);
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
    chat: (request) => askOllama(request, server, { provider, nextCallId, windowTokens, keepAlive: keepAlive ?? null }),
    async windowTokens(modelId, signal): Promise<number | null> {
      assertNotAborted(signal);
      const client = await connect(server, false, signal);
      try {
        const [show, ps] = await Promise.all([client.show({ model: modelId }), client.ps()]);
        return ollamaWindow(ollamaWindowFacts(modelId, show, ps), windowTokens);
      } catch (error) {
        assertNotAborted(signal);
        if (isUnknownModel(error)) return null;
        throw error;
      }
    },
  };
}

interface OllamaServer {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof globalThis.fetch | undefined;
  readonly timeoutMs: number | null;
}

/** What all requests of one model have in common. */
interface Asking {
  readonly provider: string;
  readonly nextCallId: () => string;
  readonly windowTokens: number | null;
  readonly keepAlive: string | null;
}

/** A client for one call: the SDK's own cannot end a single request. It holds nothing that would be lost with it. */
async function connect(
  { url, headers, fetch, timeoutMs }: OllamaServer,
  isStream: boolean,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<Ollama> {
  const { Ollama: Client } = await loadSdk("ollama", () => import("ollama"));
  const limits = [...signals, timeoutMs === null ? undefined : AbortSignal.timeout(timeoutMs)];
  const given = limits.filter((one) => one !== undefined);
  const signal = given.length === 0 ? undefined : AbortSignal.any(given);
  return new Client({ host: url, headers, fetch: ollamaFetch(isStream, signal, fetch) });
}

function askOllama(request: ChatRequest, server: OllamaServer, asking: Asking): Promise<ChatReply> {
  const { modelId, onDelta, signal } = request;
  const identity = { api: "ollama", provider: asking.provider, model: modelId };
  const draft = new ReplyDraft(identity, onDelta ?? null, asking.nextCallId);
  const body = ollamaBody(request, asking);
  // The SDK leaves the connection open when its reader stops early.
  const ending = new AbortController();
  const answer = collectReply({
    request,
    draft,
    async open() {
      const client = await connect(server, onDelta !== undefined, signal, ending.signal);
      return onDelta === undefined
        ? [await client.chat({ ...body, stream: false })]
        : await client.chat({ ...body, stream: true });
    },
    take: (response) => takeOllamaResponse(response, draft),
    endOf: ollamaEnd,
    // The SDK says itself when the last line is missing; this is what it would say.
    brokenOff: () => new Error("Did not receive done or success response in stream."),
  });
  return answer.finally(() => ending.abort());
}

function ollamaBody(
  { modelId, system, messages, tools = [], maxOutputTokens = null, thinkingLevel = "off" }: ChatRequest,
  { windowTokens, keepAlive }: Asking,
): Omit<OllamaRequest, "stream"> & { readonly truncate: false; readonly shift: false } {
  const limits = {
    ...(windowTokens === null ? {} : { num_ctx: windowTokens }),
    ...(maxOutputTokens === null ? {} : { num_predict: maxOutputTokens }),
  };
  return {
    model: modelId,
    messages: withSystem(system, messages).map(ownImages) as Message[],
    truncate: false,
    shift: false,
    think: thinkOf(modelId, thinkingLevel),
    ...(tools.length === 0 ? {} : { tools: tools.map(ollamaTool) }),
    ...(Object.keys(limits).length === 0 ? {} : { options: limits }),
    ...(keepAlive === null ? {} : { keep_alive: keepAlive }),
  };
}

/** The SDK writes to messages that hold images; the caller's stay as they are. */
function ownImages(message: unknown): unknown {
  return isFields(message) && message["images"] !== undefined ? { ...message } : message;
}

/** Most models think or do not; gpt-oss always does, more or less. */
function thinkOf(modelId: string, level: string): boolean | "high" | "medium" | "low" {
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
