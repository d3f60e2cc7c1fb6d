import { ThroughlineError } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable, type SessionModel } from "@throughline/core/internal";
import { anthropic } from "./anthropic-chat.ts";
import { connectionKinds, limitKinds, retryKinds, type ConnectionOptions, type LimitOptions } from "./model-options.ts";
import { modelProviders } from "./model-providers.ts";
import { offline } from "./offline-model.ts";
import { ollama } from "./ollama-chat.ts";
import { openai } from "./openai-model.ts";

/** Configures `createModel`. */
export interface CreateModelOptions extends LimitOptions, ConnectionOptions {
  /**
   * Selects one of `modelProviders`, or any other name together with `baseUrl`. Set `api` too if that server does not
   * speak Chat Completions.
   */
  readonly provider: string;
  /** States the model's name at the provider. */
  readonly modelId: string;
  /**
   * Selects the wire format. @default the provider's own; Chat Completions for an unknown provider and for `openai` at
   * another server
   */
  readonly api?: "anthropic" | "openai" | "openai-responses" | "ollama" | undefined;
  /** Limits the retries of the SDK. The SDK of Ollama never retries. @default 2 */
  readonly maxRetries?: number | undefined;
  /** Sets the timeout of each attempt, in milliseconds. @default 600000, for Ollama none */
  readonly timeoutMs?: number | undefined;
}

const table: OptionTable<CreateModelOptions> = {
  ...limitKinds,
  ...connectionKinds,
  ...retryKinds,
  provider: optionKinds.required(optionKinds.filledText),
  modelId: optionKinds.required(optionKinds.filledText),
  api: optionKinds.oneOf(["anthropic", "openai", "openai-responses", "ollama"]),
};

/**
 * Creates a model by the name of its provider, for programs that read the name from a configuration. The factories of
 * `/anthropic`, `/openai`, `/ollama` and `/offline` have more options.
 *
 * @returns the `model` option of `createSessions`
 * @throws {ThroughlineError} INPUT_INVALID, also for an unknown provider; MODEL_KEY_MISSING; no request was sent
 * @example
 * const model = createModel(parseModelName("anthropic/claude-sonnet-5"));
 */
export function createModel(options: CreateModelOptions): SessionModel {
  assertKnownOptions<CreateModelOptions>("createModel", options, table);
  const { modelId, api: givenApi, maxRetries, timeoutMs, ...given } = options;
  assertKnownProvider(options);
  const api = givenApi ?? usualApi(options);
  const { windowTokens, maxOutputTokens } = given;
  if (api === "offline")
    return offline({
      ...(windowTokens === undefined ? {} : { windowTokens }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    });
  const timed = { ...given, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  if (api === "ollama") return ollama(modelId, timed);
  const retrying = { ...timed, ...(maxRetries === undefined ? {} : { maxRetries }) };
  if (api === "anthropic") return anthropic(modelId, retrying);
  // For `openai` without `api` the factory selects the format by the address.
  return openai(modelId, givenApi === undefined && options.provider === "openai" ? retrying : { ...retrying, api });
}

function usualApi({ provider }: CreateModelOptions): NonNullable<CreateModelOptions["api"]> | "offline" {
  return provider === "anthropic" || provider === "ollama" || provider === "offline" ? provider : "openai";
}

/** An unknown provider needs `baseUrl`, because the address of its server is unknown. */
function assertKnownProvider({ provider, baseUrl }: CreateModelOptions): void {
  if (typeof baseUrl === "string" || modelProviders.some(({ name }) => name === provider)) return;
  const names = modelProviders.map(({ name }) => name).join(", ");
  throw new ThroughlineError("INPUT_INVALID", `No provider is called ${JSON.stringify(provider)}.`, {
    details: { provider },
    remedy: `Use one of ${names}, or pass the \`baseUrl\` of a server that speaks Chat Completions.`,
  });
}
