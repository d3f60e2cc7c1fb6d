import type { SearchFacet, SearchHit, SearchQuery, SessionStore } from "@throughline/core";
import { noted, type Mutant, type MutantWorld } from "./mutant.ts";

type BrokenHandle = NonNullable<Mutant["handle"]>;
type Search = SearchFacet["search"];

/** A store whose search is wrong. */
function searching(change: (search: Search, inner: SessionStore, world: MutantWorld) => Search): BrokenHandle {
  return (inner, world) => {
    const facet = inner.search as SearchFacet;
    return { search: { ...facet, search: change((query) => facet.search(query), inner, world) } };
  };
}

/** Every hit changed. */
function hits(change: (hit: SearchHit) => SearchHit): BrokenHandle {
  return searching(
    (search) =>
      async function* (query) {
        for await (const hit of search(query)) yield change(hit);
      },
  );
}

/** The query changed. */
function asking(change: (query: SearchQuery) => SearchQuery): BrokenHandle {
  return searching((search) => (query) => search(change(query)));
}

const textOf = ({ text = "" }: SearchQuery): string => text;

function without(query: SearchQuery, name: keyof SearchQuery): SearchQuery {
  const { [name]: _left, ...rest } = query;
  return rest as SearchQuery;
}

/** Answers are kept by their text, where a hit of them says so, and given again. */
function remembering(isKept: (inner: SessionStore, hit: SearchHit) => Promise<boolean>): BrokenHandle {
  return (inner, world) => {
    const facet = inner.search as SearchFacet;
    const kept = noted(world, "kept", () => new Map<string, SearchHit[]>());
    return {
      search: {
        lag: () => facet.lag(),
        search: async function* (query) {
          const found = (kept.get(textOf(query)) ?? []).slice();
          if (found.length === 0) for await (const hit of facet.search(query)) found.push(hit);
          for (const hit of found) if (await isKept(inner, hit)) kept.set(textOf(query), found);
          yield* found;
        },
      },
    };
  };
}

export const searchMutants: readonly Mutant[] = [
  {
    name: "search says another seq",
    foundBy: "search/finds-words",
    handle: hits((hit) => ({ ...hit, seq: hit.seq + 1 })),
  },
  {
    name: "search finds the beginning of words",
    foundBy: "search/finds-words",
    handle: asking((query) => ({ ...query, text: textOf(query).replaceAll(/(\w)(?=\s|$)/g, "$1*") })),
  },
  {
    name: "search finds any of the words",
    foundBy: "search/every-word",
    handle: searching(
      (search) =>
        async function* (query) {
          for (const text of textOf(query).split(" ")) yield* search({ ...query, text });
        },
    ),
  },
  {
    name: "search takes quotes for spaces",
    foundBy: "search/every-word",
    handle: asking((query) => ({ ...query, text: textOf(query).replaceAll('"', " ") })),
  },
  {
    name: "search counts highlights in characters",
    foundBy: "search/snippet",
    handle: hits((hit) => ({
      ...hit,
      highlights: hit.highlights.map(([start, end]) => {
        const before = Array.from(hit.snippet.slice(0, start)).length;
        return [before, before + end - start] as const;
      }),
    })),
  },
  {
    name: "search takes an underscore into the word",
    foundBy: "search/identifiers",
    handle: searching(
      (search) =>
        async function* (query) {
          if (!textOf(query).includes("_")) yield* search(query);
        },
    ),
  },
  {
    name: "search wants spaces between words",
    foundBy: "search/scripts",
    handle: searching(
      (search) =>
        async function* (query) {
          if (!/\p{Script=Han}/u.test(textOf(query))) yield* search(query);
        },
    ),
  },
  ...(["agentId", "key", "sessionId", "namespace", "state"] as const).map((name) => ({
    name: `search ignores ${name}`,
    foundBy: "search/filters-sessions",
    handle: asking((query) => without(query, name)),
  })),
  ...(["role", "tool", "sinceMs", "untilMs"] as const).map((name) => ({
    name: `search ignores ${name}`,
    foundBy: "search/filters-records",
    handle: asking((query) => without(query, name)),
  })),
  {
    name: "search cuts before it filters by session",
    foundBy: "search/filters-sessions",
    handle: searching(
      (search) =>
        async function* (query) {
          for await (const hit of search(without(query, "sessionId")))
            if (query.sessionId === undefined || hit.sessionId === query.sessionId) yield hit;
        },
    ),
  },
  {
    name: "search filters by who wrote a record",
    foundBy: "search/forks",
    handle: searching(
      (search, inner) =>
        async function* (query) {
          const writers = new Map<string, string>();
          for await (const hit of search({ text: textOf(query) })) writers.set(hit.id, hit.sessionId);
          for await (const hit of search(query)) {
            const isShared = (await inner.load(hit.ref))?.entry["forkedFrom"] !== undefined;
            if (!isShared || writers.get(hit.id) === hit.sessionId) yield hit;
          }
        },
    ),
  },
  {
    name: "search shows the writer of a record, whatever was asked for",
    foundBy: "search/forks",
    handle: searching(
      (search) =>
        async function* (query) {
          const writers = new Map<string, SearchHit>();
          for await (const hit of search({ text: textOf(query) })) writers.set(hit.id, hit);
          for await (const hit of search(query)) {
            const { ref, sessionId } = writers.get(hit.id) ?? hit;
            yield { ...hit, ref, sessionId };
          }
        },
    ),
  },
  {
    name: "search finds in a fork what was redacted",
    foundBy: "search/forks-redacted",
    handle: remembering(async (inner, hit) => (await inner.load(hit.ref))?.entry["forkedFrom"] !== undefined),
  },
  {
    name: "search forgets what was redacted in part",
    foundBy: "redacted-texts/search",
    handle: searching(
      (search) =>
        async function* (query) {
          for await (const hit of search(query)) if (!hit.snippet.includes("[redacted]")) yield hit;
        },
    ),
  },
  {
    name: "search knows OR",
    foundBy: "search/hostile",
    handle: searching(
      (search) =>
        async function* (query) {
          for (const text of textOf(query).split(" OR ")) yield* search({ ...query, text });
        },
    ),
  },
  {
    name: "search gives hits as it finds them",
    foundBy: "search/best-first",
    handle: searching(
      (search) =>
        async function* (query) {
          const found: SearchHit[] = [];
          for await (const hit of search(query)) found.push(hit);
          yield* found.toSorted((one, other) => one.seq - other.seq);
        },
    ),
  },
  {
    name: "search has no limit",
    foundBy: "search/best-first",
    handle: asking((query) => (query.limit === 1 ? without(query, "limit") : query)),
  },
  {
    name: "search lags behind",
    foundBy: "search/acknowledged",
    handle: (inner, world) => {
      const facet = inner.search as SearchFacet;
      const seen = noted(world, "seen", () => new Map<string, number>());
      return {
        search: {
          lag: () => facet.lag(),
          search: async function* (query) {
            for await (const hit of facet.search(query)) {
              const known = seen.get(hit.sessionId);
              if (known === undefined || hit.seq <= known) yield hit;
              seen.set(hit.sessionId, Math.max(known ?? 0, hit.seq));
            }
          },
        },
      };
    },
  },
  {
    name: "search remembers what was redacted",
    foundBy: "search/redacted",
    handle: remembering(() => Promise.resolve(true)),
  },
  {
    name: "search keeps old keys",
    foundBy: "search/renamed",
    handle: (inner, world) => {
      const facet = inner.search as SearchFacet;
      const first = noted(world, "first", () => new Map<string, SearchHit["ref"]>());
      return {
        search: {
          lag: () => facet.lag(),
          search: async function* (query) {
            for await (const hit of facet.search(query)) {
              const ref = first.get(hit.sessionId) ?? hit.ref;
              first.set(hit.sessionId, ref);
              yield { ...hit, ref };
            }
          },
        },
      };
    },
  },
];
