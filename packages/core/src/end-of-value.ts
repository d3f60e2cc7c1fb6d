/**
 * Returns the index after the object or list that opens at `from`, or null when it never closes. Brackets within
 * strings do not count.
 */
export function endOfValue(text: string, from: number): number | null {
  let depth = 0;
  let quote: string | null = null;
  for (let at = from; at < text.length; at++) {
    const character = text[at] as string;
    if (quote !== null) {
      if (character === "\\") at += 1;
      else if (character === quote) quote = null;
    } else if (character === '"') quote = character;
    else if (character === "{" || character === "[") depth += 1;
    else if ((character === "}" || character === "]") && --depth === 0) return at + 1;
  }
  return null;
}
