/** Lists the months from January on, in English and in German. */
const months: readonly (readonly string[])[] = [
  ["january", "januar"],
  ["february", "februar"],
  ["march", "marz"],
  ["april"],
  ["may", "mai"],
  ["june", "juni"],
  ["july", "juli"],
  ["august"],
  ["september"],
  ["october", "oktober"],
  ["november"],
  ["december", "dezember"],
];
const monthOf: ReadonlyMap<string, number> = new Map(
  months.flatMap((names, month) => names.map((name) => [name, month] as const)),
);
/** These months are verbs too, so they count only beside a number or behind one of these words. */
const verbs: ReadonlySet<string> = new Set(["may", "march"]);
const beforeMonths: ReadonlySet<string> = new Set(
  "in of on since during until till by early mid late last this next from and".split(" "),
);

const timeWords: ReadonlySet<string> = new Set([
  ...monthOf.keys(),
  ...(
    "yesterday today last ago tomorrow next week weekend month year years monday tuesday wednesday thursday friday " +
    "saturday sunday recently night since gestern heute morgen letzte letzten nachste nachsten woche wochen " +
    "wochenende monat jahr jahre montag dienstag mittwoch donnerstag freitag samstag sonntag seit uhr"
  ).split(" "),
]);
const year = /^(?:19|20)\d\d$/;

/** States what a question says about time. */
export interface AskedTime {
  /** States whether the question asks when something was, or how long it took. */
  readonly isAboutTime: boolean;
  /** Holds the months that the question names, from 0. */
  readonly months: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly years: ReadonlySet<number>;
}

export function askedTime(words: readonly string[]): AskedTime {
  const named = words.flatMap((word, index) => {
    const month = monthOf.get(word);
    const [before, after] = [words[index - 1] ?? "", words[index + 1] ?? ""];
    const isMonth = !verbs.has(word) || beforeMonths.has(before) || /^\d/.test(before) || /^\d/.test(after);
    return month !== undefined && isMonth ? [month] : [];
  });
  const [first = ""] = words;
  const has = (word: string): boolean => words.includes(word);
  return {
    isAboutTime: first === "when" || first === "wann" || (has("how") && has("long")) || (has("wie") && has("lange")),
    months: new Set(named),
    days: new Set(words.flatMap((word) => /^(\d{1,2})(?:st|nd|rd|th)?$/.exec(word)?.[1] ?? []).map(Number)),
    years: new Set(words.filter((word) => year.test(word)).map(Number)),
  };
}

/** Returns 1 for a time in a month that the question names, 2 on a day that it names too, and 0 for any other time. */
export function datePoints({ months: asked, days, years }: AskedTime, tsMs: number | null): number {
  if (asked.size === 0 || tsMs === null) return 0;
  const date = new Date(tsMs);
  if (!asked.has(date.getUTCMonth()) || (years.size > 0 && !years.has(date.getUTCFullYear()))) return 0;
  return days.has(date.getUTCDate()) ? 2 : 1;
}

export function isTimeWord(word: string): boolean {
  return timeWords.has(word) || year.test(word);
}
