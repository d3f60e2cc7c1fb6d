/** Limits the names of tools at one provider. */
export interface NameLimit {
  /** The global expression matches every character that is replaced before a name is sent. */
  readonly forbidden: RegExp;
  /** Limits the length of a name, in characters. */
  readonly maxLength: number;
  /** A name must start with a match of this expression. @default anything */
  readonly first?: RegExp;
  /**
   * The provider accepts names that match as a whole. Where it documents no characters, this is wider than the names
   * that are sent.
   */
  readonly allowed: RegExp;
}

/** The limits of a wire shape come from the provider's documents, or from its recorded refusals. */
export interface ProviderLimits {
  /** The limit applies to the list of tools, and to the name of a call that is sent. */
  readonly toolName: NameLimit;
  /** Some providers accept more names for the calls of a history than for a tool. */
  readonly calledToolName: RegExp;
  readonly callId: NameLimit;
  /** The limit applies to one image; Infinity means that no limit is known. */
  readonly maxImageBytes: number;
  /** The limit applies to one file that is not an image; Infinity means that no limit is known. */
  readonly maxFileBytes: number;
  /** The limit applies to the body of a request, in which files are base64; Infinity means that no limit is known. */
  readonly maxRequestBytes: number;
}

export type LimitedApi = "anthropic" | "openai" | "openai-responses" | "gemini" | "mistral" | "bedrock" | "ollama";

const word = /[^a-zA-Z0-9_-]/g;
const wordWithDots = /[^a-zA-Z0-9_.-]/g;
const anything = /[^]/;
const fiveMebibytes = 5 * 2 ** 20;
const megabyte = 1_000_000;

const word64: NameLimit = { forbidden: word, maxLength: 64, allowed: /^[a-zA-Z0-9_-]{1,64}$/ };
const usual: ProviderLimits = {
  toolName: word64,
  calledToolName: word64.allowed,
  callId: word64,
  maxImageBytes: Infinity,
  maxFileBytes: Infinity,
  maxRequestBytes: Infinity,
};
const geminiName = /^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$/;

/**
 * Facts about providers are stated once, by wire shape. Histories are rendered and checked by these limits, and the
 * provider simulator refuses by them. Each of these decides by itself how to apply a limit.
 */
export const providerLimits: Readonly<Record<LimitedApi, ProviderLimits>> = {
  anthropic: {
    toolName: { forbidden: word, maxLength: 128, allowed: /^[a-zA-Z0-9_-]{1,128}$/ },
    calledToolName: /^[a-zA-Z0-9_-]{1,200}$/,
    callId: word64,
    maxImageBytes: fiveMebibytes,
    maxFileBytes: 32 * megabyte,
    maxRequestBytes: 32 * megabyte,
  },
  openai: {
    ...usual,
    callId: { forbidden: word, maxLength: 40, allowed: /^[^]{1,40}$/ },
    maxFileBytes: 50 * megabyte,
    maxRequestBytes: 50 * megabyte,
  },
  "openai-responses": {
    ...usual,
    callId: { forbidden: word, maxLength: 64, allowed: /^[^]{1,64}$/ },
    maxFileBytes: 50 * megabyte,
    maxRequestBytes: 50 * megabyte,
  },
  gemini: {
    ...usual,
    // Google raised the limit of inline data from 20 MB to 100 MB in January 2026; a PDF may have 50 MB.
    maxFileBytes: 50 * megabyte,
    maxRequestBytes: 100 * megabyte,
    toolName: { forbidden: wordWithDots, maxLength: 64, first: /^[a-zA-Z_]/, allowed: geminiName },
    calledToolName: geminiName,
    callId: { forbidden: word, maxLength: 64, allowed: anything },
  },
  mistral: {
    ...usual,
    callId: { forbidden: /[^a-zA-Z0-9]/g, maxLength: 9, allowed: /^[a-zA-Z0-9]{9}$/ },
    maxFileBytes: 50 * megabyte,
  },
  // Converse takes larger PDFs for Claude 4 and Nova only. The smaller limit holds for every model.
  bedrock: { ...usual, maxImageBytes: fiveMebibytes, maxFileBytes: 4.5 * megabyte, maxRequestBytes: 25 * megabyte },
  ollama: {
    ...usual,
    toolName: { forbidden: wordWithDots, maxLength: 128, allowed: anything },
    calledToolName: anything,
    callId: { forbidden: /[^\x21-\x7e]/g, maxLength: 256, allowed: anything },
  },
};
