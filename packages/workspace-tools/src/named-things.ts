/** Paths, and names as programs have them. */
const things =
  /(?<![\w@.~/-])(?:~?\/?(?:[\w@.-]+\/)+[\w@.-]*\w|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|\w+_\w+|[\w-]+\.[a-z]{1,5})(?!\w)/g;

const longestThing = 160;
const mostMatches = 2000;

/**
 * What each text names that the others name less, the most telling first: files and identifiers are what somebody who
 * comes back to a place needs from it. At most so many characters for each text.
 */
export function namedThings(texts: readonly string[], mostLength: number): readonly (readonly string[])[] {
  const counts = texts.map((text) => countThings(text));
  const holders = new Map<string, number>();
  for (const each of counts) for (const thing of each.keys()) holders.set(thing, (holders.get(thing) ?? 0) + 1);
  return counts.map((each) => {
    const weighed = [...each].map(
      ([thing, count]) => [thing, (1 + Math.log(count)) / (holders.get(thing) ?? 1)] as const,
    );
    const chosen: string[] = [];
    let length = 0;
    for (const [thing] of weighed.toSorted(([, one], [, other]) => other - one)) {
      if (length + thing.length + 2 > mostLength) continue;
      chosen.push(thing);
      length += thing.length + 2;
    }
    return chosen;
  });
}

function countThings(text: string): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  let matches = 0;
  for (const [thing] of text.matchAll(things)) {
    if (++matches > mostMatches) break;
    if (thing.length <= longestThing && /[A-Za-z]/.test(thing)) counts.set(thing, (counts.get(thing) ?? 0) + 1);
  }
  return counts;
}
