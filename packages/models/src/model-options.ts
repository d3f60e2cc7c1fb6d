import type { Environment, SessionModel } from "@throughline/core/internal";
import type { ChatModel } from "@throughline/core";
import { optionKinds, thinkingLevels, type OptionKind, type OptionTable } from "@throughline/core/internal";

/** What every model takes. */
export interface LimitOptions {
  /** The model's window, in tokens; null stands for unknown. @default what the provider states, else what its errors have told */
  readonly windowTokens?: number | null;
  /** Taken for the window, in tokens, where nobody states one. @default null: it stays unknown */
  readonly assumedWindowTokens?: number | null;
  /** Room for each answer, in tokens; null leaves it to the provider. @default 8192 */
  readonly maxOutputTokens?: number | null;
  /**
   * How long the model thinks before it answers.
   * @default what the session says, else `off`
   */
  readonly thinkingLevel?: "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";
}

/** How a provider is reached. */
export interface ConnectionOptions {
  /**
   * The API key; null sends none.
   * @default the provider's variable in the environment, unless `baseUrl` is given: the key belongs to the provider, and another server does not get it
   */
  readonly apiKey?: string | null;
  /** The address of the server; null is the provider's own. @default the provider's variable in the environment, else its own */
  readonly baseUrl?: string | null;
  /** Sent with every request. @default {} */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends the requests, such as through a proxy. @default the system's */
  readonly fetch?: typeof globalThis.fetch;
  /** The provider's name in records. @default the name of the factory */
  readonly provider?: string;
  /** Where the variables are read. @default the system's */
  readonly environment?: Environment;
}

const tokens = optionKinds.orNull(optionKinds.integer({ min: 1 }));

/** The kinds of `LimitOptions`. */
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

/** The kinds of `ConnectionOptions`. */
export const connectionKinds: OptionTable<ConnectionOptions> = {
  apiKey: optionKinds.secret(optionKinds.orNull(optionKinds.filledText)),
  baseUrl: optionKinds.orNull(optionKinds.filledText),
  headers,
  fetch: optionKinds.callback,
  provider: optionKinds.filledText,
  environment: optionKinds.objectWith("get"),
};

/** The longest time that a timer of Node takes. */
const longestMs = 2_147_483_647;

/** The kinds of what the SDKs of Anthropic and OpenAI do by themselves. */
export const retryKinds: { readonly timeoutMs: OptionKind; readonly maxRetries: OptionKind } = {
  timeoutMs: optionKinds.integer({ min: 1, max: longestMs }),
  maxRetries: optionKinds.integer({ min: 0, max: 100 }),
};

/** A model with its limits, as `createSessions({ model })` takes it. */
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
