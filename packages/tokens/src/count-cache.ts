import { createHash } from "node:crypto";

/** Caches counts by content, so that a repeated message costs a hash and not a tokenizer run. */
export interface CountCache {
  get(tokenizer: string, texts: readonly string[], count: () => number): number;
}

/** Keeps the most recently used counts. An entry takes about 150 bytes. */
export function createCountCache(maxEntries: number, onHit: () => void): CountCache {
  const counts = new Map<string, number>();
  return {
    get(tokenizer, texts, count) {
      const key = contentKey(tokenizer, texts);
      const known = counts.get(key);
      if (known !== undefined) {
        onHit();
        counts.delete(key);
        counts.set(key, known);
        return known;
      }
      const tokens = count();
      counts.set(key, tokens);
      if (counts.size > maxEntries) counts.delete(counts.keys().next().value as string);
      return tokens;
    },
  };
}

/** The key includes the lengths, so that ["ab", "c"] and ["a", "bc"] differ. */
function contentKey(tokenizer: string, texts: readonly string[]): string {
  const hash = createHash("sha256").update(`${tokenizer} ${texts.map((text) => text.length).join(",")}\n`);
  for (const text of texts) hash.update(text, "utf16le");
  return hash.digest("base64");
}
