import { setImmediate as pause } from "node:timers/promises";
import { extendedMatch, Fzf } from "fzf";
import type { ListedSession } from "./listed-session.ts";

export interface NameMatch {
  readonly session: ListedSession;
  /** Places in the name whose characters were typed. */
  readonly positions: ReadonlySet<number>;
}

/** This many names are matched between two looks at the keyboard. */
const chunkSize = 500;
const longestName = 300;
/** Letters that are scattered over a row match too; beside a good match they are noise. */
const leastShare = 0.6;

interface Scored extends NameMatch {
  readonly score: number;
}

type Matcher = (query: string) => readonly Scored[];

/** Finds sessions by name, program and folder, as fzf does: each word of the filter has to occur in it. */
export class NameMatches {
  readonly #matchers = new WeakMap<readonly ListedSession[], Matcher>();
  #chunks: readonly (readonly ListedSession[])[] = [];
  #sessions: readonly ListedSession[] = [];

  /** Returns the best match first; of equal ones, the newest. An empty array ends with the signal. */
  async find(
    sessions: readonly ListedSession[],
    query: string,
    nameOf: (session: ListedSession) => string,
    signal: AbortSignal,
  ): Promise<readonly NameMatch[]> {
    if (sessions !== this.#sessions) this.#split(sessions);
    const found: Scored[] = [];
    let lookedMs = performance.now();
    for (const chunk of this.#chunks) {
      const matcher = this.#matchers.get(chunk) ?? matcherOf(chunk, nameOf);
      this.#matchers.set(chunk, matcher);
      for (const match of matcher(query)) found.push(match);
      if (performance.now() - lookedMs < 8) continue;
      await pause();
      if (signal.aborted) return [];
      lookedMs = performance.now();
    }
    const best = found.reduce((most, { score }) => Math.max(most, score), 0);
    // Sorting keeps the order of equal scores, which is that of the list.
    return found.filter(({ score }) => score >= best * leastShare).toSorted((one, other) => other.score - one.score);
  }

  #split(sessions: readonly ListedSession[]): void {
    this.#sessions = sessions;
    this.#chunks = Array.from({ length: Math.ceil(sessions.length / chunkSize) }, (_, at) =>
      sessions.slice(at * chunkSize, (at + 1) * chunkSize),
    );
  }
}

function matcherOf(chunk: readonly ListedSession[], nameOf: (session: ListedSession) => string): Matcher {
  const names = chunk.map((session) => nameOf(session).slice(0, longestName));
  const fzf = new Fzf(
    chunk.map((_, at) => at),
    {
      selector: (at) => `${names[at] ?? ""} ${chunk[at]?.program ?? ""} ${chunk[at]?.folder ?? ""}`,
      match: extendedMatch,
      fuzzy: "v1",
      sort: false,
    },
  );
  return (query) =>
    fzf.find(query).flatMap(({ item, positions, score }) => {
      const session = chunk[item];
      return session === undefined ? [] : [{ session, positions, score }];
    });
}
