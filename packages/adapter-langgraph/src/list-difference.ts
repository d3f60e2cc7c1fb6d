/** Describes a run of the earlier list, or the index of a new element in the later list. */
export type DifferencePart = { readonly from: number; readonly count: number } | { readonly added: number };

/**
 * Describes a later list by an earlier one: the common start and end, and between them elements in the earlier order.
 * Texts are compared as a whole.
 */
export function listDifference(before: readonly string[], after: readonly string[]): readonly DifferencePart[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  // Each stack holds the positions of a text in descending order, so that `pop` returns the first position.
  const places = new Map<string, number[]>();
  for (let at = before.length - end - 1; at >= start; at--) {
    const text = before[at] as string;
    const known = places.get(text);
    if (known === undefined) places.set(text, [at]);
    else known.push(at);
  }
  const kept: (number | null)[] = [];
  let next = start;
  for (let at = start; at < after.length - end; at++) {
    const known = places.get(after[at] as string) ?? [];
    let place = known.pop();
    while (place !== undefined && place < next) place = known.pop();
    kept.push(place ?? null);
    if (place !== undefined) next = place + 1;
  }
  return [...run(0, start), ...middle(kept, start), ...run(before.length - end, end)];
}

function run(from: number, count: number): readonly DifferencePart[] {
  return count === 0 ? [] : [{ from, count }];
}

function middle(kept: readonly (number | null)[], start: number): readonly DifferencePart[] {
  const parts: DifferencePart[] = [];
  for (const [index, place] of kept.entries()) {
    const last = parts.at(-1);
    if (place === null) parts.push({ added: start + index });
    else if (last !== undefined && "from" in last && last.from + last.count === place)
      parts[parts.length - 1] = { from: last.from, count: last.count + 1 };
    else parts.push({ from: place, count: 1 });
  }
  return parts;
}
