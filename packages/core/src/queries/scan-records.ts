import { setImmediate as pause } from "node:timers/promises";
import type { SearchHit } from "../store-facets.ts";
import type { SessionState } from "../session-state.ts";
import type { SessionStore } from "../session-store.ts";
import { findMatches, searchSnippet } from "../search-match.ts";
import { searchText } from "../search-text.ts";
import { parseAnyOf, parseSearch, type SearchPlan } from "../search-plan.ts";
import type { SessionRecord } from "../record.ts";
import type { StoredRecord } from "../stored-records.ts";
import { isFailedRecord, touchesFile } from "./touched-files.ts";
import { toolWord } from "../search-words.ts";

/** Sets the text that a scan searches for, and filters the records that it reads. */
export interface ScanOptions {
  /**
   * Sets the search text: words that must all occur, quoted phrases, and prefixes such as `compact*`. Without a word,
   * every record that passes the filters is found, the newest of a session first.
   */
  readonly text: string;
  /** Sets words of which at least one must occur, in any inflection, in place of the text. @default none */
  readonly anyOf?: readonly string[];
  /** Finds only records of this role, such as `user` or `toolResult`. @default every role */
  readonly role?: string;
  /** Finds only calls and results of the tool with this name. @default every record */
  readonly tool?: string;
  /** Finds only records at or after this time, UTC milliseconds. @default from the first */
  readonly sinceMs?: number;
  /** Finds only records before this time, UTC milliseconds. @default up to the last */
  readonly untilMs?: number;
  /** Finds only failed tool results and commands, and replies that ended with an error. @default every record */
  readonly isError?: boolean;
  /** Finds only calls that write this file: its path, or the end of its path. @default every record */
  readonly file?: string;
  /** Limits the records that are read: all of them together, and those of one session. @default no limit */
  readonly most?: { readonly records: number; readonly ofSession: number };
  /** Is called when the search leaves out records that may match. */
  readonly onCut?: () => void;
  /** Aborts the search with ABORTED. */
  readonly signal: AbortSignal;
  /** Receives the key and the number of each session, from 1, before the session is read. */
  readonly onSession?: (key: string, number: number) => void;
}

/**
 * Reads every record and yields the hits that an index would find, in the order of the sessions. The score of a hit is
 * its number of matches; of a search for any of some words, the number of these words in it.
 */
export async function* scanRecords(
  store: SessionStore,
  sessions: AsyncIterable<SessionState>,
  options: ScanOptions,
): AsyncGenerator<SearchHit, void, void> {
  const { most, signal, onCut, onSession } = options;
  const plan = options.anyOf === undefined ? parseSearch(options.text) : parseAnyOf(options.anyOf);
  const order = plan.clauses.length === 0 ? "descending" : "ascending";
  let [number, read] = [0, 0];
  for await (const state of sessions) {
    const left = Math.min(most?.ofSession ?? Infinity, (most?.records ?? Infinity) - read);
    if (left <= 0) return onCut?.();
    onSession?.(state.ref.key, ++number);
    if (state.head.lastSeq > left) onCut?.();
    const limit = left === Infinity ? {} : { limit: left };
    for await (const { records } of store.read(state.ref, { signal, order, ...limit })) {
      // A store that answers without waiting would block interrupts until every page is read.
      await pause();
      read += records.length;
      for (const stored of records) {
        const hit = hitIn(state, stored, plan, options);
        if (hit !== null) yield hit;
      }
    }
  }
}

function hitIn(
  { ref, sessionId, entry }: SessionState,
  stored: StoredRecord,
  plan: SearchPlan,
  options: ScanOptions,
): SearchHit | null {
  const { seq, id, tsMs, record } = stored;
  const { role, tool } = options;
  if (!isInTime(stored, options)) return null;
  const said = searchText(record);
  if (said === null || (role !== undefined && said.role !== role)) return null;
  if (tool !== undefined && !said.toolNames.some((name) => toolWord(name) === toolWord(tool))) return null;
  if (!passesRecord(record, options, entry.cwd)) return null;
  const matches = plan.clauses.length === 0 ? { ranges: [] } : findMatches(plan, said.text);
  if (matches === null) return null;
  const score = plan.needs === "all" ? matches.ranges.length : clausesIn(matches.ranges);
  return { ref, sessionId, seq, id, role: said.role, tsMs, score, ...searchSnippet(plan, said.text, matches) };
}

function clausesIn(ranges: readonly { readonly clauses: readonly number[] }[]): number {
  return new Set(ranges.flatMap(({ clauses }) => clauses)).size;
}

function isInTime({ tsMs, storedAtMs }: StoredRecord, { sinceMs, untilMs }: ScanOptions): boolean {
  const atMs = tsMs ?? storedAtMs;
  if (sinceMs === undefined && untilMs === undefined) return true;
  return atMs !== null && atMs >= (sinceMs ?? -Infinity) && atMs < (untilMs ?? Infinity);
}

/** Returns whether a record passes the filters that no index answers. */
export function passesRecord(
  record: SessionRecord,
  { isError, file }: Pick<ScanOptions, "isError" | "file">,
  cwd: unknown,
): boolean {
  if (isError === true && !isFailedRecord(record)) return false;
  return file === undefined || touchesFile(record, file, cwd);
}
