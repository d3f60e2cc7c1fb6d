import { createHmac } from "node:crypto";
import { RecentMap } from "./recent-map.ts";

/** The alphabet of Base32 in lower case, because an index folds upper case. */
const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
/** Holds 50 bits. Two words with one token cost a look at a text, because a search compares the words in the text itself. */
const tokenLength = 10;

/** No token has this digit, so no index has this token. */
const tokenWithoutKey = "0";

/** Twice this many words of each namespace are kept. */
const wordsInMemory = 2048;
const namespacesInMemory = 64;

interface IndexWords {
  readonly key: Buffer;
  readonly tokens: WordTokens;
}

/** Keeps the newest words in two halves, because moving a word at each use costs as much as its token. */
class WordTokens {
  #newer = new Map<string, string>();
  #older = new Map<string, string>();

  of(word: string, compute: () => string): string {
    const known = this.#newer.get(word);
    if (known !== undefined) return known;
    const token = this.#older.get(word) ?? compute();
    if (this.#newer.size >= wordsInMemory) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(word, token);
    return token;
  }
}

/** Returns the first 50 bits of HMAC-SHA-256 of a word, in Base32. */
export function searchTokenOf(word: string, key: Uint8Array): string {
  const digest = createHmac("sha256", key).update(word).digest();
  let text = "";
  let [bits, count, at] = [0, 0, 0];
  while (text.length < tokenLength) {
    if (count < 5) {
      bits = ((bits << 8) | (digest[at++] ?? 0)) & 0xffff;
      count += 8;
    }
    text += alphabet[(bits >> (count -= 5)) & 31];
  }
  return text;
}

/** Computes the tokens of an index of words, and keeps those that were used last. */
export class SearchTokens {
  readonly #namespaces = new RecentMap<IndexWords>(namespacesInMemory, ({ key }) => key.fill(0));

  /** @param findKey returns the index key of the namespace, or null for a search of a namespace without one */
  tokenOf(word: string, namespace: string, findKey: () => Buffer | null): string {
    const words = this.#namespaces.get(namespace) ?? this.#made(namespace, findKey());
    return words === null ? tokenWithoutKey : words.tokens.of(word, () => searchTokenOf(word, words.key));
  }

  #made(namespace: string, key: Buffer | null): IndexWords | null {
    return key === null ? null : this.#namespaces.set(namespace, { key, tokens: new WordTokens() });
  }

  forget(): void {
    this.#namespaces.clear();
  }
}
