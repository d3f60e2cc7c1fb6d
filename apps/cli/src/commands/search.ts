import type { SearchHit, SessionState, SessionStore } from "@throughline/core";
import { parseSearch, resolveSession, shellWord } from "@throughline/core/internal";
import { type FoundHits, type HitQuery, mostIndexedHits, searchHits } from "@throughline/core/internal/node";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import type { Output } from "../output.ts";
import { HitGroups } from "../search/hit-groups.ts";
import { nameOf, showGroup, showHeading, showHit } from "../search/show-group.ts";
import { shownName } from "../session-names.ts";
import { tellWhatHelps } from "../search/what-helps.ts";
import { tellIndexing } from "../tell-indexing.ts";

interface SearchOptions {
  readonly limit?: number;
  readonly since?: number;
  readonly until?: number;
  readonly role?: string;
  readonly tool?: string;
  readonly session?: string;
  readonly allAgents?: boolean;
  readonly archived?: boolean;
  readonly scan?: boolean;
}

/** Limits the sessions in the output for people, unless they set `--limit`. */
const shownSessions = 10;
const mostHitsOfThem = 200;
/** Limits the hits of one session in the output for people, unless they ask for one session. */
const shownOfSession = 3;

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as SearchOptions;
  const { output, scope, signal } = context;
  const text = input.arguments.join(" ");
  if (text.trim() === "") throw usageError("search needs a word to look for.");
  // Symbols and emoji are in no index and no scan, so a query without words would always report 0 hits.
  if (parseSearch(text).clauses.length === 0)
    throw usageError("search needs a word to look for: the query has no letter and no digit.", { query: text });
  const limit = options.limit ?? (output.isJson ? Number.POSITIVE_INFINITY : mostHitsOfThem);
  const store = await context.openStore("read");
  const { session } = options;
  const query: Query = {
    text,
    options,
    limit,
    session: session === undefined ? null : await resolveSession(store, session, scope, { signal }),
  };
  const found = hitsOf(context, store, query);
  if (output.isJson) return printObjects(output, found.hits, limit);
  return query.session === null
    ? printGroups(context, store, query, found)
    : printSession(context, store, query, found.hits);
}

interface Query {
  readonly text: string;
  readonly options: SearchOptions;
  readonly limit: number;
  readonly session: SessionState | null;
}

function hitsOf(context: CommandContext, store: SessionStore, query: Query): FoundHits {
  const { output } = context;
  const { limit, options } = query;
  const { index, hits } = searchHits(store, {
    ...hitQuery(context, query),
    // One extra hit shows that there are more.
    limit: limit + 1,
    onSession: (key, number) => output.progress(`searching session ${number}: ${key}`),
  });
  if (index === null) {
    output.note(store.search === undefined ? "No index: every record is read." : "Every record is read.");
    return { index, hits };
  }
  if (limit > mostIndexedHits && options.limit !== undefined)
    output.note(`The index gives the best ${mostIndexedHits} at most; --scan reads every record.`);
  return { index, hits: tellIndexing(context, index, hits) };
}

function hitQuery({ scope, signal }: CommandContext, { text, options, limit, session }: Query): HitQuery {
  const { role, tool, since, until } = options;
  return {
    text,
    signal,
    ...(role === undefined ? {} : { role }),
    ...(tool === undefined ? {} : { tool }),
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(until === undefined ? {} : { untilMs: until }),
    namespace: scope.namespace,
    agentId: options.allAgents === true ? null : scope.agentId,
    state: options.archived === true ? "any" : "active",
    session,
    limit,
    isScan: options.scan === true,
  };
}

async function printObjects(output: Output, hits: AsyncIterable<SearchHit>, limit: number): Promise<number> {
  let count = 0;
  for await (const hit of hits) {
    if (count >= limit) break;
    count += 1;
    const { ref, sessionId, seq, id, role, tsMs, score, snippet, highlights } = hit;
    await output.object({ kind: "hit", key: ref.key, sessionId, seq, id, role, tsMs, score, snippet, highlights });
    // Each hit is flushed at once, so that a reader sees it before the search ends.
    await output.flush();
  }
  await output.end(count);
  return 0;
}

async function printGroups(
  context: CommandContext,
  store: SessionStore,
  query: Query,
  { index, hits }: FoundHits,
): Promise<number> {
  const { output, signal } = context;
  const { options, limit } = query;
  const groups = new HitGroups(shownOfSession);
  const mostSessions = options.limit === undefined ? shownSessions : Number.POSITIVE_INFINITY;
  const counts: Counts = { hits: 0, sessions: 0, shown: 0, isCut: false, example: null };
  const show = async (): Promise<void> => {
    for (const group of groups.take()) {
      if (counts.shown >= mostSessions) return;
      const state = await store.load(group.first.ref, { signal });
      if (counts.shown > 0) await output.line("");
      counts.shown += 1;
      counts.example ??= group.best[0] ?? null;
      const name = state === null ? null : await shownName(store, state, signal);
      await showGroup(context, { number: counts.shown, hit: group.first, state, name }, group);
      await output.flush();
    }
  };
  for await (const hit of hits) {
    counts.isCut = counts.hits >= limit;
    const isNew = !groups.has(hit);
    // Without an index the hits of a session arrive together, so its group can be printed before the search ends.
    if (index === null && isNew) await show();
    counts.isCut ||= counts.shown >= mostSessions;
    if (counts.isCut) break;
    if (isNew) counts.sessions += 1;
    counts.hits += 1;
    groups.add(hit);
  }
  await show();
  await tellEnd(context, store, query, counts);
  return 0;
}

async function printSession(
  context: CommandContext,
  store: SessionStore,
  query: Query,
  hits: AsyncIterable<SearchHit>,
): Promise<number> {
  const counts: Counts = { hits: 0, sessions: 1, shown: 1, isCut: false, example: null };
  const { session: state } = query;
  const named = { state, name: state === null ? null : await shownName(store, state, context.signal) };
  for await (const hit of hits) {
    counts.isCut = counts.hits >= query.limit;
    if (counts.isCut) break;
    counts.hits += 1;
    counts.example ??= hit;
    if (counts.hits === 1) await showHeading(context, { number: 1, hit, ...named });
    await showHit(context, hit);
    await context.output.flush();
  }
  await tellEnd(context, store, query, counts);
  return 0;
}

interface Counts {
  hits: number;
  sessions: number;
  shown: number;
  isCut: boolean;
  example: SearchHit | null;
}

async function tellEnd(
  context: CommandContext,
  store: SessionStore,
  query: Query,
  { hits, sessions, shown, isCut, example }: Counts,
): Promise<void> {
  const { output } = context;
  if (example === null) {
    output.note("0 hits.");
    const isIndexed = store.search !== undefined && query.options.scan !== true;
    const looked = { ...query, query: hitQuery(context, query) };
    return tellWhatHelps(output, looked, isIndexed ? (changed) => searchHits(store, changed).hits : null);
  }
  const found = `${isCut ? "The first " : ""}${counted(hits, "hit")} in ${counted(sessions, "session")}`;
  const part = shown < sessions ? `; ${shown} sessions are shown` : "";
  output.note(`${found}${part}${isCut || shown < sessions ? " (--limit all shows the rest)" : ""}.`);
  const place = `${shellWord(nameOf(example))} --at ${example.seq}`;
  output.note(`\`throughline show ${place}\` prints the first hit with the records around it.`);
}
