import type { SearchFacet, SearchHit, SearchQuery } from "@throughline/core";
import { HitGroups, refused } from "@throughline/core/internal";
import { isExactSearch, rankHits, wordsToLookUp } from "@throughline/tools/internal/search";
import { z } from "zod";
import { json, list, type ListAnswer } from "../http/answer.ts";
import { present } from "../http/present.ts";
import { route, type RouteDefinition } from "../http/route.ts";
import type { View } from "../security/view.ts";
import { sessionSchema } from "../schemas/session.ts";
import { listOf, queryFlag, queryInteger, seq } from "../schemas/values.ts";
import { sessionJson } from "./session-json.ts";

const hitSchema = z
  .looseObject({
    kind: z.literal("hit"),
    agentId: z.string(),
    key: z.string(),
    archiveId: z.string().nullable(),
    sessionId: z.string(),
    seq,
    id: z.string(),
    role: z.string().nullable(),
    tsMs: z.number().nullable(),
    score: z.number(),
    snippet: z.string(),
    highlights: z.array(z.array(z.int())),
  })
  .meta({ id: "hit" });

const exactness = "false: there may be more, because an index gives 1,000 hits at most";

const hitGroupSchema = z
  .looseObject({
    kind: z.literal("hitGroup"),
    session: sessionSchema,
    hits: z
      .array(hitSchema)
      .describe("the best three; words of people and models before tool output and code that match as much"),
    total: z.int().describe("hits of the session, equal texts counted once"),
    isTotalExact: z.boolean().describe(exactness),
  })
  .meta({ id: "hitGroup" });

const usualHits = 20;
const mostHits = 1000;
const shownOfSession = 3;

const allWords = z
  .string()
  .describe(
    'words that must all occur, `"words that stand together"`, `beginn*`; with `group`, words alone are a question, of which not all have to occur',
  );
const someWords = z
  .array(z.string())
  .max(64)
  .describe("in place of `q`: words of which at least one must occur, in any inflection; rare ones come first");

/**
 * Builds the filters behind the words. A query spells numbers and flags as text and a body as JSON, so the caller passes
 * their schemas.
 */
function searchFilters(
  words: z.ZodRawShape,
  number: (min: number, max?: number) => z.ZodType<number>,
  flag: () => z.ZodType<boolean>,
): z.ZodObject {
  return z.strictObject({
    ...words,
    agent: z.string().exactOptional().describe("only sessions of this agent"),
    session: z.string().exactOptional().describe("only the session with this key, and its archived ones"),
    sessionId: z.string().exactOptional().describe("only the session with this id"),
    state: z.enum(["active", "archived", "any"]).exactOptional().describe("any without it"),
    role: z.string().exactOptional().describe("of the message, as the record spells it"),
    tool: z.string().exactOptional().describe("records that call this tool, or are its answer"),
    sinceMs: number(0).exactOptional(),
    untilMs: number(0).exactOptional(),
    limit: number(1, mostHits).exactOptional().describe(`${usualHits} without it; with \`group\` it counts sessions`),
    group: z
      .enum(["session"])
      .exactOptional()
      .describe("one item a session, of kind `hitGroup`, ranked by how well its best exchange answers"),
    exact: flag().exactOptional().describe("with `group`: only records with all words of `q`"),
  });
}

interface SearchFilters {
  readonly q?: string;
  readonly anyOf?: readonly string[];
  readonly agent?: string;
  readonly session?: string;
  readonly sessionId?: string;
  readonly state?: "active" | "archived" | "any";
  readonly role?: string;
  readonly tool?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
  readonly limit?: number;
  readonly group?: "session";
  readonly exact?: boolean;
}

const answers = {
  200: {
    description: "The hits, or groups of them.",
    schema: listOf(z.union([hitSchema, hitGroupSchema]), {
      total: z.int().describe("hits that were found, or sessions with hits"),
      isTotalExact: z.boolean().describe("false: there may be more than `total`"),
    }),
  },
} as const;

export const searchRoutes: readonly RouteDefinition[] = [
  route({
    id: "search",
    method: "GET",
    path: "/search",
    summary: "Full text over the sessions, the best hits first.",
    scope: "read",
    query: searchFilters({ q: allWords }, queryInteger, queryFlag),
    answers,
    errors: ["CAPABILITY_UNSUPPORTED"],
    // The cast is safe: the schema has the fields of `SearchFilters`, but its type loses their names.
    handle: async ({ view, query, signal }) => answerHits(view, query as unknown as SearchFilters, signal),
  }),
  route({
    id: "searchLong",
    method: "POST",
    path: "/search",
    summary: "The same, for words that no URL takes, or for any of some words.",
    scope: "read",
    body: {
      schema: searchFilters(
        { q: allWords.exactOptional(), anyOf: someWords.exactOptional() },
        (min, max) =>
          z
            .number()
            .min(min)
            .max(max ?? Number.MAX_SAFE_INTEGER),
        () => z.boolean(),
      ),
    },
    answers,
    errors: ["CAPABILITY_UNSUPPORTED"],
    // The cast is safe for the same reason as in the query.
    handle: async ({ view, body, signal }) => answerHits(view, body as unknown as SearchFilters, signal),
  }),
  route({
    id: "getSearchLag",
    method: "GET",
    path: "/search/lag",
    summary: "How many records of the store are not yet in the search index.",
    scope: "read",
    answers: {
      200: { description: "The number.", schema: z.looseObject({ kind: z.literal("lag"), records: seq }) },
    },
    errors: ["CAPABILITY_UNSUPPORTED"],
    handle: async ({ context }) => {
      const { search } = context.store;
      if (search === undefined) throw refused("CAPABILITY_UNSUPPORTED", "The store has no search index.");
      return json(200, { kind: "lag", records: await search.lag() });
    },
  }),
];

async function answerHits(view: View, filters: SearchFilters, signal: AbortSignal): Promise<ListAnswer> {
  const { q: text, anyOf, agent: given, session: key, group, exact, limit = usualHits, ...others } = filters;
  if ((text === undefined) === (anyOf === undefined))
    throw refused("INPUT_INVALID", 'The body needs either "q" or "anyOf".', { path: "q" });
  const agentId = given ?? view.onlyAgent ?? undefined;
  const { search } = view.store(agentId);
  if (search === undefined) throw refused("CAPABILITY_UNSUPPORTED", "The store has no search index.");
  const asked = present({ text, anyOf, namespace: view.namespace, ...others, agentId, key, signal });
  if (group === "session") {
    const isRanked = exact !== true && (text === undefined || !isExactSearch(text));
    const hits = isRanked ? rankedHits(view, search, asked) : search.search({ ...asked, limit: mostHits });
    return answerGroups(view, { hits, isRanked }, limit, signal);
  }
  const items: string[] = [];
  for await (const hit of search.search({ ...asked, limit })) items.push(JSON.stringify(hitJson(hit)));
  return { ...list(items), members: { total: items.length, isTotalExact: items.length < limit } };
}

/** Ranks the hits as `memory_search` ranks places. */
function rankedHits(
  view: View,
  index: SearchFacet,
  { text, anyOf, signal, ...place }: SearchQuery & { readonly signal: AbortSignal },
): AsyncIterable<SearchHit> {
  const words = anyOf ?? wordsToLookUp(text ?? "");
  return rankHits({
    question: text ?? words.join(" "),
    candidates: index.search({ ...place, anyOf: words, signal, limit: mostHits }),
    storeOf: ({ agentId }) => view.store(agentId),
    signal: () => signal,
  });
}

function hitJson({ ref, ...hit }: SearchHit): { readonly kind: "hit" } {
  const named = { agentId: ref.agentId, key: ref.key, archiveId: ref.archiveId ?? null, ...hit };
  return { kind: "hit", ...named };
}

async function answerGroups(
  view: View,
  { hits, isRanked }: { readonly hits: AsyncIterable<SearchHit>; readonly isRanked: boolean },
  limit: number,
  signal: AbortSignal,
): Promise<ListAnswer> {
  const groups = new HitGroups(shownOfSession, { isRanked });
  let found = 0;
  for await (const hit of hits) {
    found += 1;
    groups.add(hit);
  }
  const isTotalExact = found < mostHits;
  const total = groups.size;
  const items: string[] = [];
  for (const { first, best, more } of groups.take().slice(0, limit)) {
    const state = await view.store(first.ref.agentId).load(first.ref, { signal });
    // Another client removed the session meanwhile.
    if (state === null) continue;
    const group = { session: sessionJson(state), hits: best.map(hitJson), total: best.length + more, isTotalExact };
    items.push(JSON.stringify({ kind: "hitGroup", ...group }));
  }
  return { ...list(items), members: { total, isTotalExact } };
}
