import { searchIndexText } from "@throughline/core/internal";

/** Two texts that share so much of their words say the same: copied notes, an exchange in two branches of a session. */
const sameShare = 0.9;
/** Of a text, what is compared. */
const mostCompared = 4000;
/** Shorter texts have their words in common by chance. */
const fewestPairs = 8;
/** How many places are compared, whatever their content. */
const mostLookedAt = 200;

/**
 * The first places of an order, up to a number, without those that repeat an earlier one. Five equal places are worth
 * less than one and four others.
 */
export function withoutCopies<Found>(
  inOrder: readonly Found[],
  limit: number,
  textOf: (found: Found) => string,
): { readonly kept: readonly Found[]; readonly leftOut: number } {
  const kept: Found[] = [];
  const known: ReadonlySet<string>[] = [];
  let leftOut = 0;
  for (const found of inOrder.slice(0, mostLookedAt)) {
    if (kept.length >= limit) break;
    const pairs = pairsOf(textOf(found));
    if (known.some((other) => isSame(pairs, other))) {
      leftOut += 1;
      continue;
    }
    kept.push(found);
    known.push(pairs);
  }
  return { kept, leftOut };
}

/** In pairs, so that the same words in another order are another text. */
function pairsOf(text: string): ReadonlySet<string> {
  const words = searchIndexText(text.slice(0, mostCompared)).words.split(" ");
  return new Set(words.map((word, index) => `${words[index - 1] ?? ""} ${word}`));
}

function isSame(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  const [few, many] = one.size < other.size ? [one, other] : [other, one];
  if (few.size < Math.max(fewestPairs, many.size * sameShare)) return false;
  let shared = 0;
  for (const pair of few) if (many.has(pair)) shared += 1;
  return shared >= sameShare * (few.size + many.size - shared);
}
