/** What a provider takes as the name of a tool or the id of a call. */
export interface NameLimit {
  /** Every character that is replaced before a name is sent; global. */
  readonly forbidden: RegExp;
  /** The most characters. */
  readonly maxLength: number;
  /** What a name must begin with. @default anything */
  readonly first?: RegExp;
  /** What the provider takes, as a whole. Where it documents no characters this is wider than what is sent. */
  readonly allowed: RegExp;
}

/** Limits of a wire shape, as the provider documents them, or as its refusals were recorded. */
export interface ProviderLimits {
  /** In the list of tools, and in what is sent as the name of a call. */
  readonly toolName: NameLimit;
  /** What the calls of a history may be named: with some providers more than what a tool may be. */
  readonly calledToolName: RegExp;
  readonly callId: NameLimit;
  /** Of one image; Infinity where no limit is known. */
  readonly maxImageBytes: number;
}

/** Wire shapes, as `ChatModel.api` and the targets of a history name them. */
export type LimitedApi = "anthropic" | "openai" | "openai-responses" | "gemini" | "mistral" | "bedrock" | "ollama";

const word = /[^a-zA-Z0-9_-]/g;
const wordWithDots = /[^a-zA-Z0-9_.-]/g;
const anything = /[^]/;
const fiveMebibytes = 5 * 2 ** 20;

const word64: NameLimit = { forbidden: word, maxLength: 64, allowed: /^[a-zA-Z0-9_-]{1,64}$/ };
const usual: ProviderLimits = {
  toolName: word64,
  calledToolName: word64.allowed,
  callId: word64,
  maxImageBytes: Infinity,
};
const geminiName = /^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$/;

/**
 * The limits by wire shape: facts about providers, stated once. Histories are rendered and judged by them, and the provider
 * simulator refuses by them; how each of these does so is its own.
 */
export const providerLimits: Readonly<Record<LimitedApi, ProviderLimits>> = {
  anthropic: {
    toolName: { forbidden: word, maxLength: 128, allowed: /^[a-zA-Z0-9_-]{1,128}$/ },
    calledToolName: /^[a-zA-Z0-9_-]{1,200}$/,
    callId: word64,
    maxImageBytes: fiveMebibytes,
  },
  openai: { ...usual, callId: { forbidden: word, maxLength: 40, allowed: /^[^]{1,40}$/ } },
  "openai-responses": { ...usual, callId: { forbidden: word, maxLength: 64, allowed: /^[^]{1,64}$/ } },
  gemini: {
    ...usual,
    toolName: { forbidden: wordWithDots, maxLength: 64, first: /^[a-zA-Z_]/, allowed: geminiName },
    calledToolName: geminiName,
    callId: { forbidden: word, maxLength: 64, allowed: anything },
  },
  mistral: { ...usual, callId: { forbidden: /[^a-zA-Z0-9]/g, maxLength: 9, allowed: /^[a-zA-Z0-9]{9}$/ } },
  bedrock: { ...usual, maxImageBytes: fiveMebibytes },
  ollama: {
    ...usual,
    toolName: { forbidden: wordWithDots, maxLength: 128, allowed: anything },
    calledToolName: anything,
    callId: { forbidden: /[^\x21-\x7e]/g, maxLength: 256, allowed: anything },
  },
};
