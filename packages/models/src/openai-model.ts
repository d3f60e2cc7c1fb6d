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

/** Options of `openai`. */
export interface OpenAiModelOptions extends LimitOptions, ConnectionOptions {
  /**
   * The wire format: Chat Completions (`openai`), which most servers speak, or Responses.
   * @default "openai-responses" at OpenAI itself, "openai" at any other server
   */
  readonly api?: "openai" | "openai-responses";
  /** A client of `openai`, with its own key, address, headers and retries. @default one that is made of the other options */
  readonly client?: OpenAI;
  /** Repeats by the SDK, of failed connections and of 408, 409, 429 and 5xx whose wait is at most a minute. @default 2 */
  readonly maxRetries?: number;
  /** For each attempt, in milliseconds. @default 600000 */
  readonly timeoutMs?: number;
  /** Chat Completions: the field for the room of an answer. Older servers know `max_tokens` alone. @default "max_completion_tokens" */
  readonly outputLimitField?: "max_completion_tokens" | "max_tokens";
  /**
   * Responses: whether the model reasons, and so gives reasoning that has to come back; others refuse to be asked for it.
   * @default by the model's name: o1 and its kind, gpt-5 and later, codex; and whenever a thinking level is asked for
   */
  readonly reasons?: boolean;
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
 * A model of OpenAI, or of a server that speaks Chat Completions or Responses. `openai` is loaded with the first call.
 *
 * @param modelId the model's name at the provider
 * @param options the key is read from `OPENAI_API_KEY` and the address from `OPENAI_BASE_URL` where they are not given
 * @returns what `createSessions({ model })` takes; its `chat` asks the model by itself. Calls throw MODEL_SDK_MISSING, ABORTED, and the SDK's errors
 * @throws {ThroughlineError} MODEL_KEY_MISSING, INPUT_INVALID; nothing was asked then
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
