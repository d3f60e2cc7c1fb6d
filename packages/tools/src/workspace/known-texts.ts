import { searchIndexText, stemOf } from "@throughline/core/internal";

/** Holds the words of a text. */
export interface TextWords {
  /** Holds the words in their order, in the form of a search. */
  readonly words: readonly string[];
  /** Holds the stem of each word, in the same order. */
  readonly stems: readonly string[];
  /** Holds each identifier of several parts once, in one piece. */
  readonly names: readonly string[];
}

/** A word takes about 50 bytes, so that all known texts take at most about 30 MB. */
const mostKnownLength = 1_500_000;

/**
 * Keeps the words of texts. Questions to one agent meet the same episodes again, and splitting a text takes most of the
 * time of a ranking. A changed text is another text, so that nothing known is ever out of date.
 */
export class KnownTexts {
  #newer = new Map<string, TextWords>();
  #older = new Map<string, TextWords>();
  #newerLength = 0;

  wordsOf(text: string): TextWords {
    const known = this.#newer.get(text);
    if (known !== undefined) return known;
    const found = this.#older.get(text) ?? readWords(text);
    if (this.#newerLength + text.length > mostKnownLength) {
      this.#older = this.#newer;
      this.#newer = new Map();
      this.#newerLength = 0;
    }
    this.#newer.set(text, found);
    this.#newerLength += text.length;
    return found;
  }
}

export function readWords(text: string): TextWords {
  const { words: joined, names } = searchIndexText(text);
  const words = split(joined);
  return { words, stems: words.map(stemOf), names: split(names) };
}

function split(words: string): readonly string[] {
  return words === "" ? [] : words.split(" ");
}
