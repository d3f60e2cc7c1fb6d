import type { SearchHit, SearchQuery, SessionState, SessionStore } from "@throughline/core";
import { parseSearch } from "@throughline/core/store-search";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { tellIndexing } from "../tell-indexing.ts";
import type { Piece } from "../output.ts";
import { listSessions, resolveSession } from "@throughline/queries";
import { scanRecords } from "@throughline/queries/records";
import { timeText } from "../time-text.ts";

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

const shownByDefault = 50;
/** What an index gives at most. */
const mostIndexed = 1000;

/** Finds words in the records of every session: the best hits by the store's index, or all of them by reading. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as SearchOptions;
  const { output } = context;
  const text = input.arguments.join(" ");
  if (text.trim() === "") throw usageError("search needs a word to look for.");
  // Signs and emoji are in no index and no scan: without this there would be 0 hits of something that is there.
  if (parseSearch(text).clauses.length === 0)
    throw usageError("search needs a word to look for: the query has no letter and no digit.", { query: text });
  const limit = options.limit ?? (output.isJson ? Number.POSITIVE_INFINITY : shownByDefault);
  const store = await context.openStore("read");
  let count = 0;
  let isCut = false;
  for await (const hit of await hitsOf(context, store, text, limit, options)) {
    if (count >= limit) {
      isCut = true;
      break;
    }
    count += 1;
    await showHit(context, hit);
    // Streams: whoever watches sees a hit when it is found, not when the search ends.
    await output.flush();
  }
  if (output.isJson) await output.end(count);
  else
    output.note(isCut ? `The first ${counted(count, "hit")} (--limit all for the rest).` : `${counted(count, "hit")}.`);
  return 0;
}

async function hitsOf(
  context: CommandContext,
  store: SessionStore,
  text: string,
  limit: number,
  options: SearchOptions,
): Promise<AsyncIterable<SearchHit>> {
  const { output, scope, signal } = context;
  const { role, tool, since, until } = options;
  const filters = {
    text,
    signal,
    ...(role === undefined ? {} : { role }),
    ...(tool === undefined ? {} : { tool }),
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(until === undefined ? {} : { untilMs: until }),
  };
  const one = options.session === undefined ? null : await resolveSession(store, options.session, scope, { signal });
  if (store.search === undefined || options.scan === true) {
    output.note(store.search === undefined ? "No index: every record is read." : "Every record is read.");
    const onSession = (key: string, number: number): void => output.progress(`searching session ${number}: ${key}`);
    return scanRecords(store, one === null ? sessionsOf(context, store, options) : only(one), {
      ...filters,
      onSession,
    });
  }
  if (limit > mostIndexed && options.limit !== undefined)
    output.note(`The index gives the best ${mostIndexed} at most; --scan reads every record.`);
  const query: SearchQuery = {
    ...filters,
    namespace: scope.namespace,
    limit: Math.min(mostIndexed, limit + 1),
    // A key has archived sessions too; the one that was named is meant.
    ...(one === null
      ? { state: options.archived === true ? "any" : "active" }
      : { state: "any", key: one.ref.key, sessionId: one.sessionId }),
    ...(options.allAgents === true ? {} : { agentId: one?.ref.agentId ?? scope.agentId }),
  };
  return tellIndexing(context, store.search, store.search.search(query));
}

async function* only(state: SessionState): AsyncGenerator<SessionState, void, void> {
  yield state;
}

function sessionsOf(
  { scope, signal }: CommandContext,
  store: SessionStore,
  options: SearchOptions,
): AsyncGenerator<SessionState, void, void> {
  return listSessions(store, {
    namespace: scope.namespace,
    ...(options.allAgents === true ? {} : { agentId: scope.agentId }),
    state: options.archived === true ? "any" : "active",
    limit: 100,
    signal,
  });
}

async function showHit({ output }: CommandContext, hit: SearchHit): Promise<void> {
  const { ref, sessionId, seq, id, role, tsMs, score, snippet, highlights } = hit;
  if (output.isJson) {
    await output.object({ kind: "hit", key: ref.key, sessionId, seq, id, role, tsMs, score, snippet, highlights });
    return;
  }
  await output.line(
    { text: `${ref.key} #${seq} ${role ?? "record"}`, style: "cyan" },
    { text: `  ${timeText(tsMs)}`, style: "dim" },
  );
  const pieces: Piece[] = ["  "];
  let at = 0;
  for (const [start, end] of highlights) {
    pieces.push(snippet.slice(at, start), { text: snippet.slice(start, end), style: "bold" });
    at = end;
  }
  await output.line(...pieces, snippet.slice(at));
}
