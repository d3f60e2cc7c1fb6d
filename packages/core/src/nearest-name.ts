export interface NearestNameOptions {
  /**
   * Limits the edits between two names.
   * @default a third of the letters, at least 2; the beginning of a name is near to it then
   */
  readonly maxEdits?: number;
  /** Shorter names match only when case and separators alone differ. @default 0 */
  readonly minLength?: number;
  /** Compares letters and separators exactly. @default false */
  readonly exactCase?: boolean;
}

/** A longer name is compared by this many characters, because the cost grows with the square of the length. */
const comparedCharacters = 64;

/**
 * Finds the known name that a name most probably means, by the fewest edits. An edit adds, removes or replaces a
 * letter, or swaps two neighbors.
 * @param name the name that is not known; of unknown origin and any length
 * @param known the names to choose from; the first of equally near ones wins
 * @returns null when none is near enough
 * @example
 * nearestName("sytem", ["system", "target"]); // "system"
 */
export function nearestName(
  name: string,
  known: readonly string[],
  { maxEdits, minLength = 0, exactCase = false }: NearestNameOptions = {},
): string | null {
  const comparable = (text: string): string => (exactCase ? text : plainOf(text)).slice(0, comparedCharacters);
  const wanted = comparable(name.slice(0, 2 * comparedCharacters));
  const most = maxEdits ?? Math.max(2, Math.floor(wanted.length / 3));
  let best: string | null = null;
  let bestEdits = most + 1;
  for (const candidate of known) {
    const other = comparable(candidate);
    const isBeginning =
      maxEdits === undefined && wanted.length > 2 && other.length > wanted.length && other.startsWith(wanted);
    const edits = isBeginning ? 1 : editsBetween(wanted, other);
    if (edits >= bestEdits) continue;
    if (edits > 0 && Math.min(wanted.length, other.length) < minLength) continue;
    best = candidate;
    bestEdits = edits;
  }
  return best;
}

/** `send_policy`, `SendPolicy` and `send-policy` count as one name. */
function plainOf(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ .]/g, "");
}

function editsBetween(from: string, to: string): number {
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const cost = from[i - 1] === to[j - 1] ? 0 : 1;
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1);
      next.push(least);
    }
    before = row;
    row = next;
  }
  return row[to.length] ?? 0;
}
