import type { SearchHit, SessionStore } from "@throughline/core";
import { HitGroups, resolveSession, sessionRow, shellWord } from "@throughline/core/internal";
import { type HitQuery, mostIndexedHits, searchHits } from "@throughline/core/internal/node";
import { findHits, type RankedHits } from "@throughline/tools/internal/search";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted, grouped } from "../counted.ts";
import { usageError } from "../error-report.ts";
import type { Output } from "../output.ts";
import { type AskedSearch, hitQuery, searchedText, type SearchOptions } from "../search/asked-search.ts";
import { type HitPlace, keepSearch, placeOf } from "../search/last-search.ts";
import { nameOf, showGroup, showHeading, showHit } from "../search/show-group.ts";
import { tellWhatHelps } from "../search/what-helps.ts";
import { shownName } from "../session-names.ts";
import { tellIndexing } from "../tell-indexing.ts";

/** Limits the sessions in the output for people, unless they set `--limit`. */
const shownSessions = 10;
const mostHitsOfThem = 200;
/** Limits the hits of one session in a group. */
const shownOfSession = 3;

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as SearchOptions;
  const { output, scope, signal } = context;
  const text = searchedText(input.arguments, options);
  if (options.group === true && !output.isJson)
    throw usageError("--group goes with --json: the output for people is grouped already.");
  const store = await context.openStore("read");
  const { session } = options;
  const asked: AskedSearch = {
    text,
    options,
    limit: options.limit ?? usualLimit(output, text, options),
    session: session === undefined ? null : await resolveSession(store, session, scope, { signal }),
  };
  const found = hitsOf(context, store, asked);
  if (output.isJson)
    await (options.group === true
      ? printGroupObjects(context, store, asked, found)
      : printObjects(output, found.hits, asked.limit));
  else
    await (asked.session === null
      ? printGroups(context, store, asked, found)
      : printSession(context, store, asked, found));
  return 0;
}

/** Filters alone may find every record of a session, so for people the number of sessions is the limit. */
function usualLimit({ isJson }: Output, text: string, { file }: SearchOptions): number {
  const hasWords = text !== "" || file !== undefined;
  return isJson || !hasWords ? Number.POSITIVE_INFINITY : mostHitsOfThem;
}

interface CountedHits extends RankedHits {
  /** Returns whether the search left out records that may match. */
  readonly isCut: () => boolean;
}

/** Single hits are for programs that look for every record with the words. */
function searchOf(store: SessionStore, { isJson }: Output, { exact, group }: SearchOptions): Search {
  return exact === true || (isJson && group !== true)
    ? (query) => ({ ...searchHits(store, query), isRanked: false })
    : (query) => findHits(store, query);
}

type Search = (query: HitQuery) => RankedHits;

function hitsOf(context: CommandContext, store: SessionStore, asked: AskedSearch): CountedHits {
  const { output } = context;
  const { limit, options, text } = asked;
  let isCut = false;
  const { index, hits, isRanked } = searchOf(
    store,
    output,
    options,
  )({
    ...hitQuery(context, asked),
    // One extra hit shows that there are more.
    limit: limit + 1,
    onCut: () => {
      if (!isCut && !isRanked)
        output.note(
          index === null
            ? "Only the newest 2,000 records of each session were read, and 50,000 in all; --scan reads every record."
            : `Only the best ${grouped(mostIndexedHits)} hits of the index were looked at; --scan reads every record.`,
        );
      isCut = true;
    },
    onSession: (key, number) => output.progress(`searching session ${number}: ${key}`),
  });
  if (index === null) {
    if (text !== "" || options.file !== undefined || options.scan === true)
      output.note(store.search === undefined ? "No index: every record is read." : "Every record is read.");
    return { index, hits, isRanked, isCut: () => isCut };
  }
  if (limit > mostIndexedHits && options.limit !== undefined)
    output.note(`The index gives the best ${mostIndexedHits} at most; --scan reads every record.`);
  return { index, isRanked, hits: tellIndexing(context, index, hits), isCut: () => isCut };
}

async function printObjects(output: Output, hits: AsyncIterable<SearchHit>, limit: number): Promise<void> {
  let count = 0;
  for await (const hit of hits) {
    if (count >= limit) break;
    count += 1;
    await output.object(hitObject(hit));
    // Each hit is flushed at once, so that a reader sees it before the search ends.
    await output.flush();
  }
  await output.end(count);
}

function hitObject({ ref, sessionId, seq, id, role, tsMs, score, snippet, highlights }: SearchHit): {
  readonly kind: "hit";
} {
  const hit = { key: ref.key, sessionId, seq, id, role, tsMs, score, snippet, highlights };
  return { kind: "hit", ...hit };
}

/** The limit counts sessions here. */
async function printGroupObjects(
  { output, signal }: CommandContext,
  store: SessionStore,
  { limit }: AskedSearch,
  { index, hits, isRanked, isCut }: CountedHits,
): Promise<void> {
  const groups = new HitGroups(shownOfSession, { isRanked });
  let found = 0;
  for await (const hit of hits) {
    found += 1;
    groups.add(hit);
  }
  const isTotalExact = !isCut() && (index === null || found < mostIndexedHits);
  let count = 0;
  for (const { first, best, more } of groups.take()) {
    if (count >= limit) break;
    const state = await store.load(first.ref, { signal });
    if (state === null) continue;
    count += 1;
    const total = best.length + more;
    await output.object({
      kind: "hitGroup",
      session: sessionRow(state),
      hits: best.map(hitObject),
      total,
      isTotalExact,
    });
  }
  await output.end(count);
}

async function printGroups(
  context: CommandContext,
  store: SessionStore,
  asked: AskedSearch,
  { index, hits, isRanked }: CountedHits,
): Promise<void> {
  const { output, signal } = context;
  const { options, limit } = asked;
  const groups = new HitGroups(shownOfSession, { isRanked });
  const mostSessions = options.limit === undefined ? shownSessions : Number.POSITIVE_INFINITY;
  const counts: Counts = { hits: 0, sessions: 0, shown: 0, isCut: false, places: [], example: null };
  const show = async (): Promise<void> => {
    for (const group of groups.take()) {
      if (counts.shown >= mostSessions) return;
      const state = await store.load(group.first.ref, { signal });
      if (counts.shown > 0) await output.line("");
      counts.shown += 1;
      counts.example ??= group.best[0] ?? null;
      const name = state === null ? null : await shownName(store, state, signal);
      await showGroup(context, { hit: group.first, state, name }, group, counts.places.length + 1);
      counts.places.push(...group.best.map(placeOf));
      await output.flush();
    }
  };
  for await (const hit of hits) {
    counts.isCut = counts.hits >= limit;
    const isNew = !groups.has(hit);
    // A scan yields the hits of a session together, so its group can be printed before the search ends.
    if (index === null && !isRanked && isNew) await show();
    counts.isCut ||= counts.shown >= mostSessions;
    if (counts.isCut) break;
    if (isNew) counts.sessions += 1;
    counts.hits += 1;
    groups.add(hit);
  }
  await show();
  await tellEnd(context, store, asked, counts);
}

async function printSession(
  context: CommandContext,
  store: SessionStore,
  asked: AskedSearch,
  { hits }: CountedHits,
): Promise<void> {
  const counts: Counts = { hits: 0, sessions: 1, shown: 1, isCut: false, places: [], example: null };
  const { session: state } = asked;
  const named = { state, name: state === null ? null : await shownName(store, state, context.signal) };
  for await (const hit of hits) {
    counts.isCut = counts.hits >= asked.limit;
    if (counts.isCut) break;
    counts.hits += 1;
    counts.example ??= hit;
    if (counts.hits === 1) await showHeading(context, { hit, ...named });
    await showHit(context, hit, counts.hits);
    counts.places.push(placeOf(hit));
    await context.output.flush();
  }
  await tellEnd(context, store, asked, counts);
}

interface Counts {
  hits: number;
  sessions: number;
  shown: number;
  isCut: boolean;
  /** Holds the numbered hits in the order of their numbers. */
  readonly places: HitPlace[];
  example: SearchHit | null;
}

async function tellEnd(
  context: CommandContext,
  store: SessionStore,
  asked: AskedSearch,
  { hits, sessions, shown, isCut, places, example }: Counts,
): Promise<void> {
  const { output } = context;
  if (example === null) {
    output.note("0 hits.");
    const isIndexed = store.search !== undefined && asked.options.scan !== true && asked.text !== "";
    const looked = { ...asked, query: hitQuery(context, asked) };
    const search = searchOf(store, output, asked.options);
    return tellWhatHelps(output, looked, isIndexed ? (changed) => search(changed).hits : null);
  }
  keepSearch(context, places);
  const found = `${isCut ? "The first " : ""}${counted(hits, "hit")} in ${counted(sessions, "session")}`;
  const part = shown < sessions ? `; ${shown} sessions are shown` : "";
  output.note(`${found}${part}${isCut || shown < sessions ? " (--limit all shows the rest)" : ""}.`);
  const place = `${shellWord(nameOf(example))} --at ${example.seq}`;
  output.note("`throughline open N` prints hit N with the records around it, for an hour on this terminal.");
  output.note(`\`throughline show ${place}\` prints the first hit.`);
}
