import type { CountCache } from "./count-cache.ts";
import { mediaTokens } from "./media-tokens.ts";
import { messageParts, type Countable } from "./message-parts.ts";
import type { ModelName } from "./model-name.ts";
import type { ModelProfile } from "./model-profile.ts";
import type { CountTokens } from "./text-counter.ts";

/**
 * Names the counting method: a vocabulary, the kinds of characters (`heuristic`), or one token per four characters
 * (`chars4`).
 */
export type CountMethod = "claude" | "o200k_base" | "cl100k_base" | "heuristic" | "chars4";

/** Holds a count, split into the parts that calibration treats differently. */
export interface TokenCount {
  /** Counts the tokens of texts in the counter's own vocabulary, before any factor. */
  readonly bareTokens: number;
  /** Counts the tokens of images, files and provider overheads, to which no factor applies. */
  readonly fixedTokens: number;
  /** Counts the messages that the model sees. Each costs `messageOverheadTokens` more. */
  readonly messages: number;
}

/**
 * Roles, delimiters and ids of one message cost this many tokens. It is the median of 513 small steps in real Claude
 * usage, where the middle four fifths lie between 9 and 17.
 */
export const messageOverheadTokens = 15;

/** Until an observation exists, the overhead of a message is assumed to differ from the median by at most this much. */
export const overheadSpread = 8;
/** Until an observation exists, the upper end leaves this much room, because unexpected content may be present. */
export const uncalibratedHigh = 1.2;

/** Returns how far the true tokens of a text may lie off the counter's count before any observation. */
export function uncalibratedBand({ profile: { factor, spread }, method }: Pick<TokenCounter, "profile" | "method">): {
  readonly low: number;
  readonly high: number;
} {
  const off = method === "heuristic" || method === "chars4" ? Math.max(spread, 0.3) : spread;
  return { low: factor * (1 - off), high: factor * Math.max(1 + off, uncalibratedHigh) };
}

/** Counts tokens for one model. All methods are synchronous, because the vocabulary is already loaded. */
export interface TokenCounter {
  /** Names the model. */
  readonly model: ModelName;
  /** Holds the assumptions about the model's tokenizer. */
  readonly profile: ModelProfile;
  /** States whether a vocabulary counts, or a rule by characters. */
  readonly method: CountMethod;
  /** Names the tokenizer and its version. Counts and calibrations under different versions are not comparable. */
  readonly version: string;
  /**
   * Returns the tokens of one text in the counter's own vocabulary. Special tokens in the text count as ordinary text.
   */
  countText(text: string): number;
  /**
   * Returns the most tokens that a message is likely to add to a prompt, which is the upper end of an estimate without
   * calibration. Pass it to the limit of a history: `createHistory("anthropic", { limit: { maxTokens, countTokens:
   * counter.countMessage } })`.
   */
  readonly countMessage: (message: Countable) => number;
  /** Counts what the messages add to a prompt. Messages that the model does not see add nothing. */
  countMessages(messages: Iterable<Countable>): TokenCount;
  /** Counts what tool definitions add to a prompt, based on their JSON. */
  countTools(tools: readonly unknown[]): TokenCount;
}

export interface TokenCounterParts {
  readonly model: ModelName;
  readonly profile: ModelProfile;
  readonly method: CountMethod;
  readonly version: string;
  readonly countText: CountTokens;
  readonly cache: CountCache;
}

export function createTokenCounter(parts: TokenCounterParts): TokenCounter {
  const { model, profile, method, version, countText, cache } = parts;
  const countTexts = (texts: readonly string[]): number => {
    const count = (): number => texts.reduce((sum, text) => sum + countText(text), 0);
    return texts.length === 0 ? 0 : cache.get(version, texts, count);
  };
  const countMessages = (messages: Iterable<Countable>): TokenCount => {
    const total = { bareTokens: 0, fixedTokens: 0, messages: 0 };
    for (const message of messages) {
      const shown = messageParts(message);
      if (shown === null) continue;
      total.messages += 1;
      total.bareTokens += countTexts(shown.texts);
      for (const part of shown.media) total.fixedTokens += mediaTokens(part, profile.image);
    }
    return total;
  };
  const { high } = uncalibratedBand({ profile, method });
  return {
    model,
    profile,
    method,
    version,
    countText,
    countMessage: (message) => {
      const { bareTokens, fixedTokens, messages } = countMessages([message]);
      return Math.ceil(bareTokens * high + fixedTokens + messages * (messageOverheadTokens + overheadSpread));
    },
    countMessages,
    countTools(tools) {
      if (tools.length === 0) return { bareTokens: 0, fixedTokens: 0, messages: 0 };
      const bareTokens = countTexts(tools.map((tool) => JSON.stringify(tool) ?? ""));
      return { bareTokens, fixedTokens: profile.toolsTokens, messages: 0 };
    },
  };
}
