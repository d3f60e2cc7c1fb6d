const runs = /[\w@.~/-]+/g;
const longestThing = 160;
const mostMatches = 2000;

/**
 * Selects the files and identifiers that one text names more than the other texts do, most distinctive first. A reader
 * who returns to a location needs them most. The names of each text together have at most `mostLength` characters.
 */
export function identifiersIn(texts: readonly string[], mostLength: number): readonly (readonly string[])[] {
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
  for (const [run] of text.matchAll(runs)) {
    const thing = thingIn(run);
    if (thing === null) continue;
    if (++matches > mostMatches) break;
    if (thing.length <= longestThing && /[A-Za-z]/.test(thing)) counts.set(thing, (counts.get(thing) ?? 0) + 1);
  }
  return counts;
}

/** Extracts the path or the identifier at the start of a run of characters. */
function thingIn(run: string): string | null {
  if (run.length > 2 * longestThing) return null;
  const path = pathIn(run);
  if (path !== null) return path;
  const word = /^\w+/.exec(run)?.[0] ?? "";
  return isCamelCase(word) || /\w_\w/.test(word) ? word : (/^[\w-]+\.[a-z]{1,5}(?!\w)/.exec(run)?.[0] ?? null);
}

function pathIn(run: string): string | null {
  const lead = /^~?\/?/.exec(run)?.[0] ?? "";
  const parts = run.slice(lead.length).split("/");
  const stop = parts.findIndex((part) => part === "" || part.includes("~"));
  const path = parts.slice(0, stop === -1 ? parts.length : stop).join("/");
  let end = path.length;
  while (end > 0 && !/\w/.test(path[end - 1] as string)) end -= 1;
  return path.slice(0, end).includes("/") ? lead + path.slice(0, end) : null;
}

/** Requires a capital after the first character, and a small letter or a digit after each capital. */
function isCamelCase(word: string): boolean {
  return /^[A-Za-z][A-Za-z0-9]*$/.test(word) && /[A-Z]/.test(word.slice(1)) && !/[A-Z](?![a-z0-9])/.test(word);
}
