/** Behind the object or the list that opens at a place of a JSON text, brackets in its texts left aside; null when it never closes. */
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
