import { setImmediate as pause } from "node:timers/promises";
import type { SearchHit } from "../store-facets.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { findMatches, searchSnippet } from "../search-match.ts";
import { searchText } from "../search-text.ts";
import { parseSearch } from "../search-plan.ts";
import { toolWord } from "../search-words.ts";

/** What a scan looks for in the records of sessions. */
export interface ScanOptions {
  /** Words that must all occur, quoted phrases, and beginnings of words such as `compact*`. */
  readonly text: string;
  /** Finds only records of this role, such as `user` or `toolResult`. @default every role */
  readonly role?: string;
  /** Finds only calls and results of the tool with this name. @default every record */
  readonly tool?: string;
  /** Finds only records from this time on, UTC milliseconds. @default from the first */
  readonly sinceMs?: number;
  /** Finds only records before this time, UTC milliseconds. @default up to the last */
  readonly untilMs?: number;
  /** Ends the search with ABORTED. */
  readonly signal: AbortSignal;
  /** Called before each session. */
  readonly onSession?: (key: string, number: number) => void;
}

/**
 * Looks for the same as an index would, by reading every record, in the order of the sessions and as it is found. The
 * score is the number of places.
 */
export async function* scanRecords(
  store: SessionStore,
  sessions: AsyncIterable<SessionState>,
  { text, role, tool, sinceMs, untilMs, signal, onSession }: ScanOptions,
): AsyncGenerator<SearchHit, void, void> {
  const plan = parseSearch(text);
  let number = 0;
  for await (const { ref, sessionId } of sessions) {
    onSession?.(ref.key, ++number);
    for await (const { records } of store.read(ref, { signal })) {
      // A store that answers at once would let no interrupt in until all of it is read.
      await pause();
      for (const { seq, id, tsMs, storedAtMs, record } of records) {
        const atMs = tsMs ?? storedAtMs;
        if ((sinceMs !== undefined || untilMs !== undefined) && atMs === null) continue;
        if ((sinceMs !== undefined && (atMs ?? 0) < sinceMs) || (untilMs !== undefined && (atMs ?? 0) >= untilMs))
          continue;
        const searched = searchText(record);
        if (searched === null || (role !== undefined && searched.role !== role)) continue;
        if (tool !== undefined && !searched.toolNames.some((name) => toolWord(name) === toolWord(tool))) continue;
        const matches = findMatches(plan, searched.text);
        if (matches === null) continue;
        const { role: saidBy, text: said } = searched;
        const score = matches.ranges.length;
        yield { ref, sessionId, seq, id, role: saidBy, tsMs, score, ...searchSnippet(plan, said, matches) };
      }
    }
  }
}
