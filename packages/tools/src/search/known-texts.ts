import { scanWords, stemOf } from "@throughline/core/internal";
import { isTimeWord } from "./asked-times.ts";

/** Holds the words of a text as numbers of a vocabulary. */
export interface TextWords {
  /** Holds the words in their order, in the form of a search. */
  readonly words: Uint32Array;
  /** Holds each identifier of several parts once, in one piece. */
  readonly names: Uint32Array;
  /** Counts the words that state a time. */
  readonly timeWords: number;
  /** Holds the name before the first colon, as in `Ann: hello`; empty without one. */
  readonly speaker: string;
}

const speakerName = /^(\p{L}[\p{L} .'-]{0,40}):\s/u;
const mostNameLength = 50;

/** A word takes four bytes and a character of a text at most two, so that all known texts take at most about 40 MB. */
const mostKnownLength = 6_000_000;
/** A word of the vocabulary takes about 100 bytes. Identifiers make it grow without an end. */
const mostVocabulary = 200_000;

/**
 * Keeps the words of texts. Questions to one agent meet the same episodes again, and splitting a text takes most of the
 * time of a ranking. A changed text is another text, so that nothing known is ever out of date.
 */
export class KnownTexts {
  readonly #numbers = new Map<string, number>();
  readonly #words: string[] = [];
  readonly #isTimeWord: boolean[] = [];
  readonly #stems: number[] = [];
  #newer = new Map<string, TextWords>();
  #older = new Map<string, TextWords>();
  #newerLength = 0;

  wordsOf(text: string): TextWords {
    const known = this.#newer.get(text);
    if (known !== undefined) return known;
    const found = this.#older.get(text) ?? this.readWords(text);
    if (this.#newerLength + text.length > mostKnownLength / 2) {
      this.#older = this.#newer;
      this.#newer = new Map();
      this.#newerLength = 0;
    }
    this.#newer.set(text, found);
    this.#newerLength += text.length;
    return found;
  }

  /** Splits a text that is not kept, such as a question. */
  readWords(text: string): TextWords {
    const words: number[] = [];
    const names = new Set<number>();
    let timeWords = 0;
    scanWords(text, {
      word: (word) => {
        const number = this.#numberOf(word);
        words.push(number);
        if (this.#isTimeWord[number] === true) timeWords++;
      },
      name: (name) => names.add(this.#numberOf(name)),
    });
    const speaker = speakerName.exec(text.slice(0, mostNameLength))?.[1]?.toLowerCase() ?? "";
    return { words: Uint32Array.from(words), names: Uint32Array.from(names), timeWords, speaker };
  }

  wordOf(number: number): string {
    return this.#words[number] ?? "";
  }

  /** Returns the number of the word's stem. */
  stemOf(number: number): number {
    return (this.#stems[number] ??= this.#numberOf(stemOf(this.wordOf(number))));
  }

  /** States that the vocabulary has grown too large, so that the next search should start with none. */
  get isLarge(): boolean {
    return this.#words.length > mostVocabulary;
  }

  #numberOf(word: string): number {
    const known = this.#numbers.get(word);
    if (known !== undefined) return known;
    this.#numbers.set(word, this.#words.length);
    this.#isTimeWord.push(isTimeWord(word));
    return this.#words.push(word) - 1;
  }
}
