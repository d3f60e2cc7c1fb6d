import type { SearchHit, SessionStore } from "@throughline/core";
import { parseSearch } from "@throughline/core/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { tellIndexing } from "../tell-indexing.ts";
import type { Piece } from "../output.ts";
import { resolveSession, searchHits } from "@throughline/queries";
import { mostIndexedHits } from "@throughline/queries/internal";
import { shorten } from "../text-table.ts";
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

const shownByDefault = 20;

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
  const { role, tool, since, until, session } = options;
  const { index, hits } = searchHits(store, {
    text,
    signal,
    ...(role === undefined ? {} : { role }),
    ...(tool === undefined ? {} : { tool }),
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(until === undefined ? {} : { untilMs: until }),
    namespace: scope.namespace,
    agentId: options.allAgents === true ? null : scope.agentId,
    state: options.archived === true ? "any" : "active",
    session: session === undefined ? null : await resolveSession(store, session, scope, { signal }),
    // One more shows that there are more.
    limit: limit + 1,
    isScan: options.scan === true,
    onSession: (key, number) => output.progress(`searching session ${number}: ${key}`),
  });
  if (index === null) {
    output.note(store.search === undefined ? "No index: every record is read." : "Every record is read.");
    return hits;
  }
  if (limit > mostIndexedHits && options.limit !== undefined)
    output.note(`The index gives the best ${mostIndexedHits} at most; --scan reads every record.`);
  return tellIndexing(context, index, hits);
}

/** The snippet with its hits in bold; on a terminal as much around the first hit as one line holds. */
function snippetPieces(snippet: string, highlights: SearchHit["highlights"], width: number | null): readonly Piece[] {
  const room = (width ?? Number.POSITIVE_INFINITY) - 4;
  const first = highlights[0]?.[0] ?? 0;
  const from = snippet.length <= room ? 0 : Math.max(0, Math.min(first - Math.floor(room / 4), snippet.length - room));
  const to = Math.min(snippet.length, from + room);
  const pieces: Piece[] = from === 0 ? [] : ["…"];
  let at = from;
  for (const [start, end] of highlights) {
    if (end <= at || start >= to) continue;
    pieces.push(snippet.slice(at, Math.max(at, start)));
    pieces.push({ text: snippet.slice(Math.max(at, start), Math.min(end, to)), style: "bold" });
    at = Math.min(end, to);
  }
  return [...pieces, snippet.slice(at, to), ...(to < snippet.length ? ["…"] : [])];
}

async function showHit(context: CommandContext, hit: SearchHit): Promise<void> {
  const { output, host } = context;
  const { ref, sessionId, seq, id, role, tsMs, score, snippet, highlights } = hit;
  if (output.isJson) {
    await output.object({ kind: "hit", key: ref.key, sessionId, seq, id, role, tsMs, score, snippet, highlights });
    return;
  }
  const width = output.isTerminal ? (host.stdout.columns ?? 80) : null;
  const place = ` #${seq} ${role ?? "record"}`;
  const time = `  ${timeText(tsMs)}`;
  const key = width === null ? ref.key : shorten(ref.key, Math.max(20, width - place.length - time.length));
  await output.line({ text: `${key}${place}`, style: "cyan" }, { text: time, style: "dim" });
  await output.line("  ", ...snippetPieces(snippet, highlights, width));
}
