import type { Environment, SessionModel } from "@throughline/core/internal";
import type { ChatModel } from "@throughline/core";
import { optionKinds, thinkingLevels, type OptionKind, type OptionTable } from "@throughline/core/internal";

/** Holds the options that every model accepts. */
export interface LimitOptions {
  /**
   * Sets the model's window in tokens; null means unknown. @default the window that the provider states, else the one
   * that its errors reveal
   */
  readonly windowTokens?: number | null | undefined;
  /**
   * Sets the window in tokens that applies if neither `windowTokens` nor the provider states one. @default null: the
   * window stays unknown
   */
  readonly assumedWindowTokens?: number | null | undefined;
  /** Limits each answer, in tokens; null leaves the limit to the provider. @default 8192 */
  readonly maxOutputTokens?: number | null | undefined;
  /**
   * Sets how long the model thinks before it answers.
   * @default the session's level, else `off`
   */
  readonly thinkingLevel?: "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | undefined;
}

/** Sets how a model reaches its provider. */
export interface ConnectionOptions {
  /**
   * Sets the API key; null sends none.
   * @default the provider's variable in the environment, unless `baseUrl` is given: the key belongs to the provider,
   * and another server does not get it
   */
  readonly apiKey?: string | null | undefined;
  /**
   * Sets the address of the server; null selects the provider's own. @default the provider's variable in the
   * environment, else its own
   */
  readonly baseUrl?: string | null | undefined;
  /** Adds headers to every request. @default {} */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sends the requests, for example through a proxy. @default the system's */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Sets the provider's name in records. @default the name of the factory */
  readonly provider?: string | undefined;
  /** Reads the environment variables. @default the system's */
  readonly environment?: Environment | undefined;
}

const tokens = optionKinds.orNull(optionKinds.integer({ min: 1 }));

export const limitKinds: OptionTable<LimitOptions> = {
  windowTokens: tokens,
  assumedWindowTokens: tokens,
  maxOutputTokens: tokens,
  thinkingLevel: optionKinds.oneOf(thinkingLevels),
};

const headers: OptionKind = {
  expected: "an object whose values are texts",
  accepts: (value) =>
    optionKinds.object.accepts(value) && Object.values(value as object).every(optionKinds.text.accepts),
};

export const connectionKinds: OptionTable<ConnectionOptions> = {
  apiKey: optionKinds.secret(optionKinds.orNull(optionKinds.filledText)),
  baseUrl: optionKinds.orNull(optionKinds.filledText),
  headers,
  fetch: optionKinds.callback,
  provider: optionKinds.filledText,
  environment: optionKinds.objectWith("get"),
};

/** A timer of Node accepts no longer time; a longer one would fire at once. */
const longestMs = 2_147_483_647;

/** Only the SDKs of Anthropic and OpenAI implement these options. */
export const retryKinds: { readonly timeoutMs: OptionKind; readonly maxRetries: OptionKind } = {
  timeoutMs: optionKinds.integer({ min: 1, max: longestMs }),
  maxRetries: optionKinds.integer({ min: 0, max: 100 }),
};

export function sessionModel(chat: ChatModel, modelId: string, limits: LimitOptions): SessionModel {
  const { windowTokens, assumedWindowTokens, maxOutputTokens, thinkingLevel } = limits;
  return {
    chat,
    modelId,
    ...(windowTokens === undefined ? {} : { windowTokens }),
    ...(assumedWindowTokens === undefined ? {} : { assumedWindowTokens }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
  };
}
