import type { SearchHit } from "@throughline/core";

/** The hits of one session, as many of them as are shown. */
export interface HitGroup {
  /** The first hit that was found; it leads to the session. */
  readonly first: SearchHit;
  /** The best hits: words of people before tool output and code, then by score. Equal texts are there once. */
  readonly best: readonly SearchHit[];
  /** Hits with other texts that are not among the best. */
  readonly more: number;
}

/** Hits by session, whatever order they come in. Memory holds the shown hits of each session, and the texts of all. */
export class HitGroups {
  readonly #groups = new Map<string, GrowingGroup>();
  readonly #mostShown: number;

  /** @param mostShown hits of a session that are shown */
  constructor(mostShown: number) {
    this.#mostShown = mostShown;
  }

  get size(): number {
    return this.#groups.size;
  }

  has(hit: SearchHit): boolean {
    return this.#groups.has(groupName(hit));
  }

  add(hit: SearchHit): void {
    const name = groupName(hit);
    const group = this.#groups.get(name) ?? new GrowingGroup(hit);
    this.#groups.set(name, group);
    group.add(hit, this.#mostShown);
  }

  /** The groups so far, those with words of people first, else in the order of their first hits; they are taken out. */
  take(): readonly HitGroup[] {
    const groups = [...this.#groups.values()].map((group) => group.taken());
    this.#groups.clear();
    return groups.toSorted((one, other) => Number(other.best.some(isProse)) - Number(one.best.some(isProse)));
  }
}

function groupName({ ref: { agentId, key }, sessionId }: SearchHit): string {
  return JSON.stringify([agentId, key, sessionId]);
}

/** Texts of a session that are compared; behind them, equal ones may count twice. */
const mostTexts = 10_000;

class GrowingGroup {
  readonly #first: SearchHit;
  readonly #texts = new Set<string>();
  #count = 0;
  #best: SearchHit[] = [];

  constructor(first: SearchHit) {
    this.#first = first;
  }

  add(hit: SearchHit, mostShown: number): void {
    const text = hit.snippet.replaceAll(/\s+/g, " ").trim();
    if (this.#texts.has(text)) return;
    if (this.#texts.size < mostTexts) this.#texts.add(text);
    this.#count += 1;
    this.#best = [...this.#best, hit].toSorted(byWorth).slice(0, mostShown);
  }

  taken(): HitGroup {
    return { first: this.#first, best: this.#best, more: this.#count - this.#best.length };
  }
}

function byWorth(one: SearchHit, other: SearchHit): number {
  return Number(isProse(other)) - Number(isProse(one)) || other.score - one.score;
}

/** Marks that are common in code and data, and rare in sentences: signs, `camelCase`, and dots within words. */
const marksOfCode = /[{}[\]()<>=;|\\"#$*_/`]|[a-z][A-Z]|\w\.\w/g;
const mostMarksOfProse = 0.08;

/** Whether a hit is what a person or a model said, and no code or output. */
export function isProse({ role, snippet }: Pick<SearchHit, "role" | "snippet">): boolean {
  if (role !== "user" && role !== "assistant") return false;
  return (snippet.match(marksOfCode)?.length ?? 0) <= snippet.length * mostMarksOfProse;
}
