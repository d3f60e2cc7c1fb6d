import type { OpenAI } from "openai";
import { ThroughlineError } from "@throughline/core";
import {
  assertArgument,
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  type SessionModel,
} from "@throughline/core/internal";
import {
  connectionKinds,
  limitKinds,
  retryKinds,
  sessionModel,
  type ConnectionOptions,
  type LimitOptions,
} from "./model-options.ts";
import { openAiConnector } from "./openai-client.ts";
import { openAiCompletions } from "./openai-completions.ts";
import { openAiResponses } from "./openai-responses.ts";
import { isOwnAddress } from "./model-providers.ts";

/** Configures `openai`. */
export interface OpenAiModelOptions extends LimitOptions, ConnectionOptions {
  /**
   * Selects the wire format: Chat Completions (`openai`), which most servers speak, or Responses.
   * @default "openai-responses" at OpenAI itself, "openai" at any other server
   */
  readonly api?: "openai" | "openai-responses" | undefined;
  /**
   * Sets a client of `openai`, which brings its own key, address, headers and retries. @default a client created from
   * the other options
   */
  readonly client?: OpenAI | undefined;
  /**
   * Limits the retries of the SDK. It retries failed connections and the status codes 408, 409, 429 and 5xx, if the
   * wait is at most a minute. @default 2
   */
  readonly maxRetries?: number | undefined;
  /** Sets the timeout of each attempt, in milliseconds. @default 600000 */
  readonly timeoutMs?: number | undefined;
  /**
   * Names the field that limits the answer in Chat Completions. Older servers accept only `max_tokens`. @default
   * "max_completion_tokens"
   */
  readonly outputLimitField?: "max_completion_tokens" | "max_tokens" | undefined;
  /**
   * States whether the model reasons, for Responses only. If true, requests ask for encrypted reasoning, which later
   * requests must send back. Models that do not reason reject such requests.
   * @default by the model's name: o1 and its successors, gpt-5 and later, codex; and whenever a thinking level is set
   */
  readonly reasons?: boolean | undefined;
}

const table: OptionTable<OpenAiModelOptions> = {
  ...limitKinds,
  ...connectionKinds,
  ...retryKinds,
  api: optionKinds.oneOf(["openai", "openai-responses"]),
  client: optionKinds.objectWith("post"),
  outputLimitField: optionKinds.oneOf(["max_completion_tokens", "max_tokens"]),
  reasons: optionKinds.flag,
};

/**
 * Creates a model of OpenAI, or of a server that speaks Chat Completions or Responses. The first call loads `openai`.
 *
 * @param modelId the model's name at the provider
 * @param options `apiKey` defaults to `OPENAI_API_KEY` and `baseUrl` to `OPENAI_BASE_URL`
 * @returns the `model` option of `createSessions`; its `chat` can also be called directly. Calls throw
 * MODEL_SDK_MISSING, ABORTED, and the SDK's errors
 * @throws {ThroughlineError} MODEL_KEY_MISSING, INPUT_INVALID; no request was sent
 * @example
 * const gpt = openai("gpt-5", { thinkingLevel: "low" });
 * const local = openai("qwen3-32b", { baseUrl: "http://127.0.0.1:8000/v1", provider: "vllm", windowTokens: 32_768 });
 */
export function openai(modelId: string, options: OpenAiModelOptions = {}): SessionModel {
  assertKnownOptions<OpenAiModelOptions>("openai", options, table);
  assertArgument("openai", "modelId", modelId, optionKinds.filledText);
  const { provider = "openai", outputLimitField, reasons } = options;
  const { connect, address } = openAiConnector(options);
  const api = options.api ?? (isOwnAddress("openai", address) ? "openai-responses" : "openai");
  if (api === "openai") {
    if (reasons !== undefined) throw misplaced("reasons", "openai-responses");
    const chat = openAiCompletions(connect, { provider, limitField: outputLimitField ?? "max_completion_tokens" });
    return sessionModel(chat, modelId, options);
  }
  if (outputLimitField !== undefined) throw misplaced("outputLimitField", "openai");
  return sessionModel(openAiResponses(connect, { provider, reasons: reasons ?? null }), modelId, options);
}

function misplaced(option: string, api: string): ThroughlineError {
  return new ThroughlineError("INPUT_INVALID", `openai(): \`${option}\` applies to \`api: "${api}"\` only.`, {
    details: { argument: option },
    remedy: `Leave \`${option}\` out, or pass \`api: "${api}"\`.`,
  });
}
