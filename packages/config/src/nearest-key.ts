/** The known key that is most like `key`, upper and lower case being the same; null when none is near. */
export function nearestKey(key: string, known: readonly string[]): string | null {
  const wanted = key.toLowerCase().slice(0, 64);
  let best: string | null = null;
  // A third of the letters may differ: `stor`, `log-level` and `timeout` find their keys, `banana` finds none.
  let bestDistance = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const other = candidate.toLowerCase();
    const distance = other.startsWith(wanted) && wanted.length > 2 ? 1 : editDistance(wanted, other);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions and replacements between two texts. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      const cost = from[i - 1] === to[j - 1] ? 0 : 1;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + cost));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
