import { setImmediate as pause } from "node:timers/promises";
import type { SearchHit } from "../store-facets.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { findMatches, searchSnippet } from "../search-match.ts";
import { searchText } from "../search-text.ts";
import { parseSearch } from "../search-plan.ts";
import { toolWord } from "../search-words.ts";

/** Sets the text that a scan searches for, and filters the records that it reads. */
export interface ScanOptions {
  /** Sets the search text: words that must all occur, quoted phrases, and prefixes such as `compact*`. */
  readonly text: string;
  /** Finds only records of this role, such as `user` or `toolResult`. @default every role */
  readonly role?: string;
  /** Finds only calls and results of the tool with this name. @default every record */
  readonly tool?: string;
  /** Finds only records at or after this time, UTC milliseconds. @default from the first */
  readonly sinceMs?: number;
  /** Finds only records before this time, UTC milliseconds. @default up to the last */
  readonly untilMs?: number;
  /** Aborts the search with ABORTED. */
  readonly signal: AbortSignal;
  /** Receives the key and the number of each session, from 1, before the session is read. */
  readonly onSession?: (key: string, number: number) => void;
}

/**
 * Reads every record and yields the hits that an index would find, in the order of the sessions. The score of a hit is
 * its number of matches.
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
      // A store that answers without waiting would block interrupts until every page is read.
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
