import type { SearchFacet, SearchHit, SearchQuery, SessionStore } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";
import { noted, type Mutant, type MutantWorld } from "./mutant.ts";

type BrokenHandle = NonNullable<Mutant["handle"]>;
type Search = SearchFacet["search"];

/** A store whose search for any of some words is wrong; a search by text is right. */
function anyOf(
  answer: (
    query: SearchQuery & { readonly anyOf: readonly string[] },
    search: Search,
    world: MutantWorld,
  ) => AsyncIterable<SearchHit>,
): BrokenHandle {
  return (inner: SessionStore, world) => {
    const facet = inner.search as SearchFacet;
    const search: Search = (query) => {
      const { anyOf: words } = query;
      const right: Search = (asked) => facet.search(asked);
      return words === undefined ? right(query) : answer({ ...query, anyOf: words }, right, world);
    };
    return { search: { ...facet, search } };
  };
}

const asking = (change: (query: SearchQuery & { readonly anyOf: readonly string[] }) => SearchQuery): BrokenHandle =>
  anyOf((query, search) => search(change(query)));

function without(query: SearchQuery, name: keyof SearchQuery): SearchQuery {
  const { [name]: _left, ...rest } = query;
  return rest as SearchQuery;
}

async function allOf(hits: AsyncIterable<SearchHit>): Promise<SearchHit[]> {
  const found: SearchHit[] = [];
  for await (const hit of hits) found.push(hit);
  return found;
}

export const anyOfMutants: readonly Mutant[] = [
  {
    name: "any of the words means all of them",
    foundBy: "search-any-of/some",
    handle: anyOf(async function* (query, search) {
      const rest = without(query, "anyOf");
      if (query.anyOf.length > 0) yield* search({ ...rest, text: query.anyOf.join(" ") });
    }),
  },
  {
    name: "the words are marked nowhere",
    foundBy: "search-any-of/some",
    handle: anyOf(async function* (query, search) {
      for await (const hit of search(query)) yield { ...hit, highlights: [] };
    }),
  },
  {
    name: "any of the words finds their exact form only",
    foundBy: "search-any-of/inflections",
    handle: anyOf(async function* (query, search) {
      const isSaid = ({ snippet }: SearchHit): boolean =>
        query.anyOf.some((word) => snippet.toLowerCase().includes(word.toLowerCase()));
      for await (const hit of search(query)) if (isSaid(hit)) yield hit;
    }),
  },
  {
    name: "any of the words finds what begins with them",
    foundBy: "search-any-of/inflections",
    handle: anyOf(async function* (query, search) {
      const seen = new Set<string>();
      const rest = without(query, "anyOf");
      const [first = ""] = query.anyOf;
      const asked = [
        query,
        ...(query.anyOf.length === 1 && /^\w+$/.test(first) ? [{ ...rest, text: `${first}*` }] : []),
      ];
      for (const one of asked)
        for await (const hit of search(one)) {
          if (!seen.has(hit.id)) yield hit;
          seen.add(hit.id);
        }
    }),
  },
  {
    name: "an identifier among the words is found by its parts only",
    foundBy: "search-any-of/identifiers",
    handle: anyOf(async function* (query, search) {
      for await (const hit of search(query)) if (!/parseS/.test(hit.snippet)) yield hit;
    }),
  },
  {
    name: "a word counts the same however many records hold it",
    foundBy: "search-any-of/best-first",
    handle: anyOf(async function* (query, search) {
      const hits = await allOf(search(without(query, "limit")));
      yield* hits.toSorted((one, other) => other.highlights.length - one.highlights.length || other.seq - one.seq);
    }),
  },
  {
    name: "equal records come oldest first",
    foundBy: "search-any-of/best-first",
    handle: anyOf(async function* (query, search) {
      const hits = await allOf(search(query));
      yield* hits.toReversed().toSorted((one, other) => other.score - one.score);
    }),
  },
  {
    name: "any of the words has no limit",
    foundBy: "search-any-of/best-first",
    handle: asking((query) => (query.limit === 1 ? without(query, "limit") : query)),
  },
  {
    name: "any of the words is cut before it is filtered",
    foundBy: "search-any-of/filters",
    handle: anyOf(async function* (query, search) {
      for await (const hit of search(without(query, "sessionId")))
        if (query.sessionId === undefined || hit.sessionId === query.sessionId) yield hit;
    }),
  },
  ...(["agentId", "key", "sessionId", "namespace", "state", "role", "tool", "sinceMs", "untilMs"] as const).map(
    (name) => ({
      name: `any of the words ignores ${name}`,
      foundBy: "search-any-of/filters",
      handle: asking((query) => without(query, name)),
    }),
  ),
  {
    name: "any of the words finds a shared record in each session",
    foundBy: "search-any-of/forks",
    handle: (inner) => {
      const facet = inner.search as SearchFacet;
      const search: Search = async function* (query) {
        if (query.anyOf === undefined || query.key !== undefined) return yield* facet.search(query);
        const { sessions } = await inner.list({ state: "any" });
        for (const { sessionId } of sessions) yield* facet.search({ ...query, sessionId });
      };
      return { search: { ...facet, search } };
    },
  },
  {
    name: "any of the words remembers what was redacted",
    foundBy: "search-any-of/redacted",
    handle: anyOf(async function* (query, search, world) {
      const kept = noted(world, "any-of", () => new Map<string, readonly SearchHit[]>());
      const name = query.anyOf.join(" ");
      const hits = kept.get(name) ?? (await allOf(search(query)));
      kept.set(name, hits);
      yield* hits;
    }),
  },
  {
    name: "any of the words lags behind",
    foundBy: "search-any-of/acknowledged",
    handle: anyOf(async function* (query, search, world) {
      const seen = noted(world, "any-of-seen", () => new Map<string, number>());
      for await (const hit of search(query)) {
        const known = seen.get(hit.sessionId);
        if (known === undefined || hit.seq <= known) yield hit;
        seen.set(hit.sessionId, Math.max(known ?? 0, hit.seq));
      }
    }),
  },
  {
    name: "any of the words takes each option as it comes",
    foundBy: "search-any-of/refused",
    handle: (inner) => {
      const facet = inner.search as SearchFacet;
      const search: Search = (query) => facet.search(query.anyOf === undefined ? query : without(query, "text"));
      return { search: { ...facet, search } };
    },
  },
  {
    name: "any of the words fails on words that are no words",
    foundBy: "search-any-of/refused",
    handle: anyOf((query, search) => {
      const isPlain = query.anyOf.every((word) => typeof word !== "string" || /^[\w\s]*$/u.test(word));
      if (!isPlain) throw new ThroughlineError("STORE_IO", "syntax error", { outcome: "not-applied" });
      return search(query);
    }),
  },
];
