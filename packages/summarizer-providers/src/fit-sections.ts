import {
  emptySections,
  sectionNames,
  writeSections,
  type SectionName,
  type SummarySections,
} from "./summary-sections.ts";

/** Sets the share of the room that each section may use. The other sections get what a section leaves. */
const shares: Readonly<Record<SectionName, number>> = { topics: 0.35, decisions: 0.2, state: 0.3, open: 0.15 };

/**
 * Limits the sections to a number of tokens. It keeps the newest items of each section, and the first topic, because it
 * names the subject. The number of omitted items is stated.
 */
export function fitSections(
  sections: SummarySections,
  mostTokens: number,
  countText: (text: string) => number,
): SummarySections {
  const costs = new Map(sectionNames.map((name) => [name, costOf(name, sections[name], countText)]));
  const fitted = emptySections();
  let spare = sectionNames.reduce(
    (sum, name) => sum + Math.max(0, mostTokens * shares[name] - (costs.get(name) ?? 0)),
    0,
  );
  for (const name of sectionNames) {
    const own = mostTokens * shares[name];
    const cost = costs.get(name) ?? 0;
    const extra = Math.min(spare, Math.max(0, cost - own));
    spare -= extra;
    fitted[name].push(...newest(name, sections[name], Math.min(cost, own + extra), countText));
  }
  return fitted;
}

function costOf(name: SectionName, items: readonly string[], countText: (text: string) => number): number {
  return countText(writeSections({ ...emptySections(), [name]: items }));
}

function newest(
  name: SectionName,
  items: readonly string[],
  mostTokens: number,
  countText: (text: string) => number,
): readonly string[] {
  if (costOf(name, items, countText) <= mostTokens) return items;
  const first = name === "topics" ? items.slice(0, 1) : [];
  const others = items.slice(first.length);
  const keeping = (count: number): readonly string[] => {
    return [...first, `(${others.length - count} more, left out)`, ...others.slice(others.length - count)];
  };
  const count = mostThatFit(others.length - 1, (kept) => costOf(name, keeping(kept), countText) <= mostTokens);
  if (count > 0) return keeping(count);
  const last = items.at(-1) ?? "";
  const chars = Math.max(40, Math.floor(mostTokens * 3));
  return last.length <= chars ? [last] : [`${last.slice(0, chars).toWellFormed()}…`];
}

/**
 * Returns the largest number up to `most` that fits, or 0. It doubles the number until one is too large, so that the
 * cost grows with the result and not with `most`.
 */
function mostThatFit(most: number, fits: (count: number) => boolean): number {
  let fitting = 0;
  let step = 1;
  while (fitting + step <= most && fits(fitting + step)) {
    fitting += step;
    step *= 2;
  }
  for (; step >= 1; step = Math.floor(step / 2)) {
    if (fitting + step <= most && fits(fitting + step)) fitting += step;
  }
  return fitting;
}
