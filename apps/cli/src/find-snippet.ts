/** A piece of a text around a match. */
export interface Snippet {
  /** On one line. */
  readonly text: string;
  /** Start and end of each match in `text`, in UTF-16 units. */
  readonly highlights: readonly (readonly [number, number])[];
  /** Matches in the whole text. */
  readonly matchCount: number;
}

const contextCharacters = 60;

/**
 * The first place where every word of the query stands as it is written, upper and lower case being the same and any
 * white space standing for any other. Null when the text does not hold the phrase.
 */
export function findSnippet(text: string, query: string): Snippet | null {
  const words = query.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0 || text === "") return null;
  const pattern = new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("\\s+"), "giu");
  const first = pattern.exec(text);
  if (first === null) return null;
  let matchCount = 1;
  while (pattern.exec(text) !== null) matchCount += 1;
  const start = wholeCharacterStart(text, Math.max(0, first.index - contextCharacters));
  const end = wholeCharacterStart(text, Math.min(text.length, first.index + first[0].length + contextCharacters));
  const piece = text.slice(start, end).replace(/\s/g, " ");
  const lead = start > 0 ? "…" : "";
  const shown = `${lead}${piece}${end < text.length ? "…" : ""}`;
  // One white space character replaces one, so that positions stay.
  const highlights = Array.from(text.slice(start, end).matchAll(pattern), (match): readonly [number, number] => [
    match.index + lead.length,
    match.index + lead.length + match[0].length,
  ]);
  return { text: shown, highlights, matchCount };
}

/** Not between the two halves of a character. */
function wholeCharacterStart(text: string, index: number): number {
  const unit = text.charCodeAt(index);
  return unit >= 0xdc00 && unit <= 0xdfff ? index - 1 : index;
}
