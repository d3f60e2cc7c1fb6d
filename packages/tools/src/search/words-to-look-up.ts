import { searchIndexText } from "@throughline/core/internal";
import { stopWords } from "./stop-words.ts";

/** These are the limits of a search for any of some words. Of a longer question the longest words are looked up. */
const mostWords = 64;
const mostWordsLength = 1000;

/**
 * Returns the words of a question that an index looks up. Stop words are in most records, and looking them up takes a fifth
 * of the time.
 */
export function wordsToLookUp(query: string): readonly string[] {
  const { words, names } = searchIndexText(query.slice(0, 2000));
  const all = [...new Set([...names.split(" "), ...words.split(" ")])].filter((word) => word !== "");
  const topics = all.filter((word) => !stopWords.has(word));
  let length = 0;
  return (topics.length > 0 ? topics : all)
    .toSorted((one, other) => other.length - one.length)
    .slice(0, mostWords)
    .filter((word) => (length += word.length) <= mostWordsLength);
}
