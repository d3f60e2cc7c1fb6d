import type { SearchHit, SearchQuery } from "@throughline/core";
import {
  findMatches,
  type SearchClause,
  type SearchPlan,
  type SearchScope,
  searchSnippet,
  searchText,
} from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import { wholeRecordOf } from "./record-rows.ts";
import { SessionFilter, type Condition } from "./session-filter.ts";
import { refOf } from "./rows.ts";
import type { Session } from "./rows.ts";
import type { StoreContext } from "./store-context.ts";

/** A record that fits, before anybody has ranked it. */
export interface FoundRecord {
  /** Its number: records are numbered in the order of their commits. */
  readonly record: number;
  readonly session: Session;
  readonly seq: number;
}

/** A record that fits, best first. */
export interface RankedRecord extends Omit<FoundRecord, "record"> {
  readonly rank: number;
}

/** How many of the newest matches are ranked by their text if SQLite's ranking would take too long. */
const newestMatches = 200;
/**
 * Of a word that stands in more records only the newest matches are ranked: a word that is everywhere distinguishes
 * records by their age at most. SQLite's own ranking first counts every match of every word in the whole index, in one
 * go: 5,000 take it 10 ms.
 */
const mostRanked = 5000;

/** A query as the database takes it. */
export interface RecordSearch {
  /** What each record must hold, every one by itself. */
  readonly parts: readonly string[];
  /** Of records, but not of their words nor of their sessions. */
  readonly filters: Condition;
  readonly sessions: SessionFilter;
  readonly limit: number;
  /** The number of the newest record there is. */
  readonly newest: number;
  /** How many of the newest are read first. */
  readonly most: number;
  /** True if a word is searched by its prefix: FTS5 merges all words with that prefix each time. */
  readonly hasBeginning: boolean;
  /** True when words have to be looked for together, or by their beginnings: that takes long however few are found. */
  readonly isDear: boolean;
}

/** What to ask the database. Words in one piece count as much as their parts; the names of tools only filter. */
export function prepareSearch({ statements }: Connection, query: SearchQuery, scope: SearchScope): RecordSearch {
  const { clauses } = scope.plan;
  const hasBeginning = clauses.some(({ isPrefix }) => isPrefix);
  return {
    parts: matchParts(scope),
    filters: filtersOf(query),
    sessions: new SessionFilter(query, scope),
    limit: scope.limit,
    newest: statements.newestRecord.get() ?? 0,
    most: Math.max(newestMatches, scope.limit),
    hasBeginning,
    isDear: hasBeginning || clauses.some(({ words }) => words.length > 1),
  };
}

/** The records of these numbers that pass the filters, the newest first. */
export function passing(
  connection: Connection,
  { filters, sessions }: RecordSearch,
  records: readonly number[],
): FoundRecord[] {
  const { condition, likely } = sessions;
  const found = connection.database
    .prepare<unknown[], FoundRecord & { readonly isOwn: number }>(
      `SELECT r.record, r.session, r.seq, ${condition.sql} AS isOwn
       FROM json_each(?) j CROSS JOIN store_records r ON r.record = j.value
       CROSS JOIN store_sessions s ON s.session = r.session WHERE ${likely.sql}${filters.sql}`,
    )
    .all(...condition.values, JSON.stringify(records), ...likely.values, ...filters.values);
  return found
    .filter(({ session, seq, isOwn }) => sessions.shows(connection, session, seq, isOwn === 1))
    .toSorted((one, other) => other.record - one.record);
}

/** Whether SQLite is to rank all matches: where it is quick, it knows more of words. */
export function isWorthRanking({ database }: Connection, { parts, isDear }: RecordSearch): boolean {
  if (isDear) return false;
  const count = database
    .prepare<[string], number>(
      `SELECT count(*) FROM (SELECT 1 FROM store_search WHERE store_search MATCH ? LIMIT ${mostRanked + 1})`,
    )
    .pluck();
  return parts.every((part) => (count.get(part) ?? 0) <= mostRanked);
}

/** The numbers of all matches as SQLite ranks them, best first, whatever the filters say. */
export function rankedNumbers(
  { database }: Connection,
  { parts }: RecordSearch,
): readonly { readonly record: number; readonly rank: number }[] {
  return database
    .prepare<[string], { readonly record: number; readonly rank: number }>(
      `SELECT rowid AS record, bm25(store_search, 1.0, 1.0, 0.0) AS rank FROM store_search
       WHERE store_search MATCH ? ORDER BY rank, rowid DESC`,
    )
    .all(parts.join(" AND "));
}

/** The hit of a ranked record; null when it has changed since it was ranked. */
export function hitOf(
  { rows: coder }: StoreContext,
  connection: Connection,
  plan: SearchPlan,
  sessions: SessionFilter,
  { session, seq, rank }: RankedRecord,
): SearchHit | null {
  const { statements } = connection;
  const owner = statements.findSession.get(session);
  const [found] = statements.readRecords.ascending.all(session, seq - 1, seq + 1, 1);
  if (owner === undefined || found === undefined) return null;
  const shown = sessions.shownBy(connection, session, seq);
  if (shown === undefined) return null;
  const stored = wholeRecordOf(coder, owner, statements, found);
  if (stored === null) return null;
  const text = searchText(stored.record);
  const matches = text === null ? null : findMatches(plan, text.text);
  if (text === null || matches === null) return null;
  return {
    ref: refOf(shown),
    sessionId: shown.session_id,
    seq,
    id: stored.id,
    role: text.role,
    tsMs: stored.tsMs,
    score: -rank,
    ...searchSnippet(plan, text.text, matches),
  };
}

/** Every word in quotes, so that nothing in it is an operator. Words are letters and digits only. */
function matchParts({ plan, toolWord }: SearchScope): string[] {
  return [...plan.clauses.map(clauseText), ...(toolWord === null ? [] : [`(tools : "${toolWord}")`])];
}

function clauseText({ words, isPrefix, name }: SearchClause): string {
  const phrase = `"${words.join(" ")}"${isPrefix ? " *" : ""}`;
  const columns = words.length === 1 ? "{words names}" : "words";
  return `(${columns} : ${phrase}${name === null ? "" : ` OR {words names} : "${name}"`})`;
}

const timeOf = "coalesce(r.ts_ms, r.stored_at_ms, 0)";

/** What is asked of a record's columns, each condition with its AND. */
function filtersOf({ role, sinceMs, untilMs }: SearchQuery): Condition {
  const wanted = [
    ["r.role = ?", role],
    [`${timeOf} >= ?`, sinceMs],
    [`${timeOf} < ?`, untilMs],
  ] as const;
  const given = wanted.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  return { sql: given.map(({ sql }) => ` AND ${sql}`).join(""), values: given.map(({ value }) => value) };
}
