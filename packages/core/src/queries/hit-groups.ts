import type { SearchHit } from "../store-facets.ts";

export interface HitGroup {
  /** Holds the first hit of the session, which identifies it. */
  readonly first: SearchHit;
  /** Holds the best hits in their order. Equal texts occur once. */
  readonly best: readonly SearchHit[];
  /** Counts hits with other texts that are not among the best. */
  readonly more: number;
}

/**
 * Groups hits by session. Memory holds only the shown hits of each session, and the texts of all. Ranked hits arrive in
 * the order that groups and hits keep. Other hits arrive in any order: words of people are sorted before tool output and
 * code, then by score.
 */
export class HitGroups {
  readonly #groups = new Map<string, GrowingGroup>();
  readonly #mostShown: number;
  readonly #isRanked: boolean;

  /** @param mostShown limit of shown hits for each session */
  constructor(mostShown: number, { isRanked }: { readonly isRanked: boolean } = { isRanked: false }) {
    this.#mostShown = mostShown;
    this.#isRanked = isRanked;
  }

  get size(): number {
    return this.#groups.size;
  }

  has(hit: SearchHit): boolean {
    return this.#groups.has(groupName(hit));
  }

  add(hit: SearchHit): void {
    const name = groupName(hit);
    const group = this.#groups.get(name) ?? new GrowingGroup(hit, this.#isRanked);
    this.#groups.set(name, group);
    group.add(hit, this.#mostShown);
  }

  /** Removes and returns the groups in the order of their first hits. Without a ranking, words of people come first. */
  take(): readonly HitGroup[] {
    const groups = [...this.#groups.values()].map((group) => group.taken());
    this.#groups.clear();
    if (this.#isRanked) return groups;
    return groups.toSorted((one, other) => Number(other.best.some(isProse)) - Number(one.best.some(isProse)));
  }
}

function groupName({ ref: { agentId, key }, sessionId }: SearchHit): string {
  return JSON.stringify([agentId, key, sessionId]);
}

/** Limits the texts that are compared in a session. Beyond this number, equal texts may count twice. */
const mostTexts = 10_000;

class GrowingGroup {
  readonly #first: SearchHit;
  readonly #isRanked: boolean;
  readonly #texts = new Set<string>();
  #count = 0;
  #best: SearchHit[] = [];

  constructor(first: SearchHit, isRanked: boolean) {
    this.#first = first;
    this.#isRanked = isRanked;
  }

  add(hit: SearchHit, mostShown: number): void {
    const text = hit.snippet.replaceAll(/\s+/g, " ").trim();
    if (this.#texts.has(text)) return;
    if (this.#texts.size < mostTexts) this.#texts.add(text);
    this.#count += 1;
    if (!this.#isRanked) this.#best = [...this.#best, hit].toSorted(byWorth).slice(0, mostShown);
    else if (this.#best.length < mostShown) this.#best.push(hit);
  }

  taken(): HitGroup {
    return { first: this.#first, best: this.#best, more: this.#count - this.#best.length };
  }
}

function byWorth(one: SearchHit, other: SearchHit): number {
  return Number(isProse(other)) - Number(isProse(one)) || other.score - one.score;
}

/** These marks are common in code and data, and rare in sentences: symbols, `camelCase`, and dots within words. */
const marksOfCode = /[{}[\]()<>=;|\\"#$*_/`]|[a-z][A-Z]|\w\.\w/g;
const mostMarksOfProse = 0.08;

/** True for a message of a user or a model that is neither code nor output. */
export function isProse({ role, snippet }: Pick<SearchHit, "role" | "snippet">): boolean {
  if (role !== "user" && role !== "assistant") return false;
  return (snippet.match(marksOfCode)?.length ?? 0) <= snippet.length * mostMarksOfProse;
}
