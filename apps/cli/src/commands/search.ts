import type { SessionState, StoredRecord } from "@throughline/core";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { findSnippet } from "../find-snippet.ts";
import type { Snippet } from "../find-snippet.ts";
import type { Piece } from "../output.ts";
import { messageRole, recordRole, recordText } from "../record-text.ts";
import { listSessions, resolveSession } from "../resolve-session.ts";
import { timeText } from "../time-text.ts";

interface SearchOptions {
  readonly limit?: number;
  readonly since?: number;
  readonly until?: number;
  readonly role?: string;
  readonly session?: string;
  readonly allAgents?: boolean;
  readonly archived?: boolean;
}

interface Hit {
  readonly state: SessionState;
  readonly stored: StoredRecord;
  readonly snippet: Snippet;
}

const shownByDefault = 50;

/** Looks through the records of every session, newest session first, and prints hits as they are found. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as SearchOptions;
  const { output } = context;
  const query = input.arguments.join(" ");
  if (query.trim() === "") throw usageError("search needs a word to look for.");
  const limit = options.limit ?? (output.isJson ? Number.POSITIVE_INFINITY : shownByDefault);
  output.note("No index: every record is read.");
  let count = 0;
  let isCut = false;
  for await (const hit of scan(context, query, options)) {
    if (count >= limit) {
      isCut = true;
      break;
    }
    count += 1;
    await showHit(context, hit);
    // Streams: whoever watches sees a hit when it is found, not when the scan ends.
    await output.flush();
  }
  if (output.isJson) await output.end(count);
  else
    output.note(isCut ? `The first ${counted(count, "hit")} (--limit all for the rest).` : `${counted(count, "hit")}.`);
  return 0;
}

async function* scan(context: CommandContext, query: string, options: SearchOptions): AsyncGenerator<Hit, void, void> {
  const { output, signal } = context;
  const store = await context.openStore("read");
  let sessions = 0;
  for await (const state of sessionsOf(context, options)) {
    sessions += 1;
    output.progress(`searching session ${sessions}: ${state.ref.key}`);
    for await (const { records } of store.read(state.ref, { signal })) {
      for (const stored of records) {
        if (!isInScope(stored, options)) continue;
        const snippet = findSnippet(recordText(stored.record), query);
        if (snippet !== null) yield { state, stored, snippet };
      }
    }
  }
}

async function* sessionsOf(context: CommandContext, options: SearchOptions): AsyncGenerator<SessionState, void, void> {
  const { scope, signal } = context;
  const store = await context.openStore("read");
  if (options.session !== undefined) {
    yield await resolveSession(store, options.session, scope, { signal });
    return;
  }
  yield* listSessions(store, {
    namespace: scope.namespace,
    ...(options.allAgents === true ? {} : { agentId: scope.agentId }),
    state: options.archived === true ? "any" : "active",
    limit: 100,
    signal,
  });
}

function isInScope(stored: StoredRecord, { role, since, until }: SearchOptions): boolean {
  if (role !== undefined && messageRole(stored.record) !== role) return false;
  if (since !== undefined && (stored.tsMs === null || stored.tsMs < since)) return false;
  return until === undefined || (stored.tsMs !== null && stored.tsMs < until);
}

async function showHit({ output }: CommandContext, { state, stored, snippet }: Hit): Promise<void> {
  const { text, highlights, matchCount } = snippet;
  if (output.isJson) {
    const { seq, id, tsMs, record } = stored;
    const { key } = state.ref;
    const role = messageRole(record);
    await output.object({
      kind: "hit",
      key,
      sessionId: state.sessionId,
      seq,
      id,
      role,
      tsMs,
      score: matchCount,
      snippet: text,
      highlights,
    });
    return;
  }
  await output.line(
    { text: `${state.ref.key} #${stored.seq} ${recordRole(stored.record)}`, style: "cyan" },
    { text: `  ${timeText(stored.tsMs)}`, style: "dim" },
  );
  const pieces: Piece[] = ["  "];
  let at = 0;
  for (const [start, end] of highlights) {
    pieces.push(text.slice(at, start), { text: text.slice(start, end), style: "bold" });
    at = end;
  }
  await output.line(...pieces, text.slice(at));
}
