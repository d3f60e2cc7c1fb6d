import type { CountCache } from "./count-cache.ts";
import { mediaTokens } from "./media-tokens.ts";
import { messageParts, type Countable } from "./message-parts.ts";
import type { ModelName } from "./model-name.ts";
import type { ModelProfile } from "./model-profile.ts";
import type { CountTokens } from "./text-counter.ts";

/** How texts are counted: with a vocabulary, by the kinds of characters, or a token for four characters. */
export type CountMethod = "claude" | "o200k_base" | "cl100k_base" | "heuristic" | "chars4";

/** What was counted, in the parts that calibration treats differently. */
export interface TokenCount {
  /** Tokens of the texts in the counter's own vocabulary, before any factor. */
  readonly bareTokens: number;
  /** Tokens of images, files and provider overheads, which no factor applies to. */
  readonly fixedTokens: number;
  /** Messages a model is shown; each costs `messageOverheadTokens` more. */
  readonly messages: number;
}

/**
 * What roles, delimiters and ids of one message cost: the median of 513 small steps in real Claude usage, where the
 * middle four fifths lie between 9 and 17.
 */
export const messageOverheadTokens = 15;

/** The overhead of a message lies so far off the usual one at most, until something was observed. */
export const overheadSpread = 8;
/** Until there is something to go by, room for the unexpected. */
export const uncalibratedHigh = 1.2;

/** How far the true tokens of a text may lie off a count in the counter's own vocabulary, until something was observed. */
export function uncalibratedBand({ profile: { factor, spread }, method }: Pick<TokenCounter, "profile" | "method">): {
  readonly low: number;
  readonly high: number;
} {
  const off = method === "heuristic" || method === "chars4" ? Math.max(spread, 0.3) : spread;
  return { low: factor * (1 - off), high: factor * Math.max(1 + off, uncalibratedHigh) };
}

/** Counts for one model. Synchronous: its vocabulary is loaded. */
export interface TokenCounter {
  /** The model that is counted for. */
  readonly model: ModelName;
  /** How the model's tokens are estimated. */
  readonly profile: ModelProfile;
  /** Whether a vocabulary counts, or a rule by characters. */
  readonly method: CountMethod;
  /** Tokenizer and version: counts and calibrations under another are not comparable. */
  readonly version: string;
  /** Tokens of one text in the counter's own vocabulary. Any text: special tokens count as what they look like. */
  countText(text: string): number;
  /**
   * The most that a message is likely to add to a prompt: the upper end of an estimate without calibration. For the limit
   * of a history: `createHistory("anthropic", { limit: { maxTokens, countTokens: counter.countMessage } })`.
   */
  readonly countMessage: (message: Countable) => number;
  /** What the messages a model is shown add to a prompt; the others add nothing. */
  countMessages(messages: Iterable<Countable>): TokenCount;
  /** What tool definitions add to a prompt, counted from their JSON. */
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
