import { searchIndexText } from "@throughline/core/internal";

/**
 * Two texts with this share of common word pairs count as copies: copied notes, or an exchange in two branches of a
 * session.
 */
const sameShare = 0.9;
/** Limits the compared part of a text, in characters. */
const mostCompared = 4000;
/** Shorter texts may share their words by chance. */
const fewestPairs = 8;
/** Limits the candidates that are compared, because each is compared with every kept one. */
const mostLookedAt = 200;

/**
 * Keeps the first candidates of an order, without those that repeat an earlier one. Five equal hits help less than one
 * hit and four different ones.
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

/** Pairs of words are compared, so that the same words in another order count as another text. */
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
