import { hashTexts } from "./thinking-seal.ts";
import type { PromptPiece } from "./count-tokens.ts";

interface CacheUsage {
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
}

export interface PrefixCache {
  /** Splits the prompt into cached and new tokens, and stores its marked prefixes for later requests. */
  account(pieces: readonly PromptPiece[]): CacheUsage;
}

/** The provider searches at most this many pieces back from a breakpoint. */
const lookBack = 20;

interface Prefix {
  readonly hash: string;
  readonly tokens: number;
}

function prefixesOf(pieces: readonly PromptPiece[]): readonly Prefix[] {
  let hash = "";
  let tokens = 0;
  return pieces.map((piece) => {
    hash = hashTexts([hash, piece.key]);
    tokens += piece.tokens;
    return { hash, tokens };
  });
}

/**
 * Creates a cache without expiry. It never stores a prefix shorter than `minimumTokens`, because the provider does not
 * either.
 */
export function createPrefixCache(minimumTokens: number): PrefixCache {
  const known = new Set<string>();
  return {
    account(pieces): CacheUsage {
      const prefixes = prefixesOf(pieces);
      const breakpoints = pieces.flatMap((piece, index) => (piece.marked ? [index] : []));
      const total = prefixes.at(-1)?.tokens ?? 0;
      const usable = breakpoints.filter((index) => (prefixes[index]?.tokens ?? 0) >= minimumTokens);
      const last = usable.at(-1);
      if (last === undefined) return { inputTokens: total, cacheReadTokens: 0, cacheWriteTokens: 0 };
      const searched = usable.flatMap((index) => prefixes.slice(Math.max(0, index - lookBack), index + 1));
      const cacheReadTokens = Math.max(
        0,
        ...searched.filter(({ hash }) => known.has(hash)).map(({ tokens }) => tokens),
      );
      for (const index of usable) known.add(prefixes[index]?.hash ?? "");
      const covered = prefixes[last]?.tokens ?? 0;
      return { inputTokens: total - covered, cacheReadTokens, cacheWriteTokens: covered - cacheReadTokens };
    },
  };
}
