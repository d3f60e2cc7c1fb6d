import type { ChatModel, ChatReply, ChatRequest, RandomSource } from "@throughline/core";
import { systemRandom } from "@throughline/core/node";
import type { ChatRequest as OllamaRequest, Message, Ollama, Tool } from "ollama";
import { plainAddress } from "./base-url.ts";
import { callIds } from "./call-ids.ts";
import { assertNotAborted, collectReply } from "./collect-reply.ts";
import { withSystem } from "./create-openai-chat-model.ts";
import { assertHeaderValues } from "./header-values.ts";
import { isUnknownModel } from "./is-unknown-model.ts";
import { loadSdk } from "./load-sdk.ts";
import { ollamaFetch } from "./ollama-fetch.ts";
import { ollamaEnd, takeOllamaResponse } from "./ollama-reply.ts";
import { ollamaWindow, ollamaWindowFacts } from "./ollama-window.ts";
import { ReplyDraft } from "./reply-draft.ts";
import { isFields } from "./wire-fields.ts";

export interface OllamaModelOptions {
  /** As `OLLAMA_HOST` says it, with or without scheme and port. @default "http://127.0.0.1:11434" */
  readonly baseUrl?: string;
  /** For servers behind a gate, sent as a bearer token. @default none */
  readonly apiKey?: string | null;
  /**
   * The window each request asks for (`options.num_ctx`). Without it the server's own setting holds, which may be as
   * small as 4,096. A loaded model is loaded anew when it changes. @default none
   */
  readonly contextTokens?: number;
  /** From the request to the end of the answer; loading a model counts. @default none */
  readonly timeoutMs?: number;
  /** Sent with every request. @default {} */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the server is to keep the model loaded, in its own words, such as "30m". @default the server's */
  readonly keepAlive?: string;
  /** The name in records. @default "ollama" */
  readonly provider?: string;
  /** For the ids of calls that a server gives none. @default the system's */
  readonly random?: RandomSource;
}

/**
 * The models of an Ollama server. Its SDK retries nothing. A prompt over the window is refused instead of cut
 * (`truncate` and `shift` are off). Nothing is asked or loaded before the first call.
 * @throws {ThroughlineError} from its functions: MODEL_SDK_MISSING, ABORTED; else the SDK's errors
 */
export function createOllamaModel(options: OllamaModelOptions = {}): ChatModel {
  const provider = options.provider ?? "ollama";
  const nextCallId = callIds(options.random ?? systemRandom);
  return {
    provider,
    api: "ollama",
    chat: (request) => askOllama(request, options, provider, nextCallId),
    async windowTokens(model, signal): Promise<number | null> {
      assertNotAborted(signal);
      const client = await connect(options, false, signal);
      try {
        const [show, ps] = await Promise.all([client.show({ model }), client.ps()]);
        return ollamaWindow(ollamaWindowFacts(model, show, ps), options.contextTokens ?? null);
      } catch (error) {
        assertNotAborted(signal);
        if (isUnknownModel(error)) return null;
        throw error;
      }
    },
  };
}

/** A client for one call: the SDK's own cannot end a single request. It holds nothing that would be lost with it. */
async function connect(
  options: OllamaModelOptions,
  isStream: boolean,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<Ollama> {
  const { Ollama: Client } = await loadSdk("ollama", () => import("ollama"));
  const { apiKey = null, timeoutMs } = options;
  assertHeaderValues(apiKey, options.headers);
  const limits = [...signals, timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)];
  const given = limits.filter((one) => one !== undefined);
  const { url, authorization } = plainAddress(options.baseUrl ?? "http://127.0.0.1:11434");
  const credentials = apiKey === null ? authorization : `Bearer ${apiKey}`;
  return new Client({
    host: url,
    headers: { ...options.headers, ...(credentials === null ? {} : { Authorization: credentials }) },
    fetch: ollamaFetch(isStream, given.length === 0 ? undefined : AbortSignal.any(given)),
  });
}

function askOllama(
  request: ChatRequest,
  options: OllamaModelOptions,
  provider: string,
  nextCallId: () => string,
): Promise<ChatReply> {
  const { model, onDelta, signal } = request;
  const draft = new ReplyDraft({ api: "ollama", provider, model }, onDelta ?? null, nextCallId);
  const body = ollamaBody(request, options);
  // The SDK leaves the connection open when its reader stops early.
  const ending = new AbortController();
  const answer = collectReply({
    request,
    draft,
    async open() {
      const client = await connect(options, onDelta !== undefined, signal, ending.signal);
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
  { model, system, messages, tools = [], maxOutputTokens = null, thinkingLevel = "off" }: ChatRequest,
  { contextTokens, keepAlive }: OllamaModelOptions,
): Omit<OllamaRequest, "stream"> & { readonly truncate: false; readonly shift: false } {
  const limits = {
    ...(contextTokens === undefined ? {} : { num_ctx: contextTokens }),
    ...(maxOutputTokens === null ? {} : { num_predict: maxOutputTokens }),
  };
  return {
    model,
    messages: withSystem(system, messages).map(ownImages) as Message[],
    truncate: false,
    shift: false,
    think: thinkOf(model, thinkingLevel),
    ...(tools.length === 0 ? {} : { tools: tools.map(ollamaTool) }),
    ...(Object.keys(limits).length === 0 ? {} : { options: limits }),
    ...(keepAlive === undefined ? {} : { keep_alive: keepAlive }),
  };
}

/** The SDK writes to messages that hold images; the caller's stay as they are. */
function ownImages(message: unknown): unknown {
  return isFields(message) && message["images"] !== undefined ? { ...message } : message;
}

/** Most models think or do not; gpt-oss always does, more or less. */
function thinkOf(model: string, level: string): boolean | "high" | "medium" | "low" {
  if (level === "off") return false;
  if (!model.includes("gpt-oss")) return true;
  return level === "high" || level === "medium" ? level : "low";
}

function ollamaTool({ name, description, inputSchema }: NonNullable<ChatRequest["tools"]>[number]): Tool {
  return {
    type: "function",
    function: { name, description, parameters: inputSchema as Tool["function"]["parameters"] & object },
  };
}
