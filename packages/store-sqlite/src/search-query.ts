import type { SearchHit, SearchQuery } from "@throughline/core";
import {
  findMatches,
  roleToken,
  type SearchClause,
  type SearchPlan,
  type SearchScope,
  searchSnippet,
  searchText,
  type SearchToken,
  tokenPlan,
} from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import { wholeRecordOf } from "./record-rows.ts";
import { checkedSession } from "./row-checksums.ts";
import { SessionFilter, type Condition } from "./session-filter.ts";
import { refOf } from "./rows.ts";
import type { Session } from "./rows.ts";
import type { StoreContext } from "./store-context.ts";

/** Names a record that matches and is not ranked yet. */
export interface FoundRecord {
  /** Numbers the record in the order of commits. */
  readonly record: number;
  readonly session: Session;
  readonly seq: number;
}

/** Names a match with its rank. */
export interface RankedRecord extends Omit<FoundRecord, "record"> {
  readonly rank: number;
}

/** Limits how many of the newest matches are ranked by their text if the ranking of SQLite would take too long. */
const newestMatches = 200;
/** One step filters at most this many of the best matches. */
const passedAtOnce = 1024;
/** The first step filters few, because most searches need no more. Each match is a look-up somewhere in the file. */
const passedFirst = 64;
/** Runs one step on a connection, and lets other work run after it. */
export type Step = <Result>(step: (connection: Connection) => Result) => Promise<Result>;
/**
 * For a word in more records than this, only the newest matches are ranked: a word that is everywhere distinguishes
 * records by their age at most. The ranking of SQLite first counts every match of every word in the whole index,
 * without a pause. That takes 10 ms for 5,000 matches.
 */
const mostRanked = 5000;

/** Holds a query in the form in which the database takes it. */
export interface RecordSearch {
  /** Lists what each record must hold, every part by itself. */
  readonly parts: readonly string[];
  /** Lists the words of a search, each as a part of its own. */
  readonly clauses: readonly string[];
  /** States the part that the name of the tool is, and under a codec the role; null for any tool. */
  readonly tool: string | null;
  /** Filters the columns of records, but not their words and not their sessions. */
  readonly filters: Condition;
  readonly sessions: SessionFilter;
  readonly limit: number;
  /** Holds the number of the newest record. */
  readonly newest: number;
  /** Limits how many of the newest matches are read first. */
  readonly most: number;
  /** States whether a word is searched by its prefix. FTS5 merges all words with that prefix each time. */
  readonly hasBeginning: boolean;
  /** States whether words must be found together or by a prefix, which takes long however few matches there are. */
  readonly isDear: boolean;
}

/**
 * Prepares a query for the database. Words in one piece count as much as their parts, and the names of tools only
 * filter.
 */
export function prepareSearch(
  { statements }: Connection,
  query: SearchQuery,
  scope: SearchScope,
  token: SearchToken | null = null,
): RecordSearch {
  const { clauses, needs } = token === null ? scope.plan : tokenPlan(scope.plan, token).plan;
  const hasBeginning = clauses.some(({ isPrefix }) => isPrefix);
  const texts = clauses.map(clauseText);
  // Words are put in quotes, so that none of them is an operator. They have only letters and digits.
  const labels = labelsOf(scope, token);
  const tool = labels.length === 0 ? null : `(${labels.map((label) => `tools : "${label}"`).join(" AND ")})`;
  return {
    parts: partsOf(needs === "all" ? texts : [anyOf(texts)], tool),
    clauses: texts,
    tool,
    filters: filtersOf(query, token !== null),
    sessions: new SessionFilter(query, scope),
    limit: scope.limit,
    newest: statements.newestRecord.get() ?? 0,
    most: Math.max(newestMatches, scope.limit),
    hasBeginning,
    isDear: hasBeginning || clauses.some(({ words }) => words.length > 1),
  };
}

/** Returns the words that the column of tools must have. Under a codec a row does not state its role. */
function labelsOf({ toolWord: tool, role }: SearchScope, token: SearchToken | null): readonly string[] {
  if (token === null) return tool === null ? [] : [tool];
  return [...(tool === null ? [] : [token(tool)]), ...(role === null ? [] : [roleToken(role, token)])];
}

/** Returns the search for records with any of these clauses. */
export function withClauses(search: RecordSearch, clauses: readonly string[]): RecordSearch {
  return { ...search, parts: partsOf([anyOf(clauses)], search.tool) };
}

function anyOf(clauses: readonly string[]): string {
  return `(${clauses.join(" OR ")})`;
}

function partsOf(clauses: readonly string[], tool: string | null): readonly string[] {
  return tool === null ? clauses : [...clauses, tool];
}

/** Returns the records of these numbers that pass the filters, the newest first. */
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

/** Returns whether SQLite should rank all matches. It weighs words better, where it is quick. */
export function isWorthRanking(connection: Connection, { parts, isDear }: RecordSearch): boolean {
  return !isDear && parts.every((part) => countMatching(connection, part, mostRanked + 1) <= mostRanked);
}

/** Counts the records that match a part, up to a limit. Counting 10,000 matches takes one millisecond. */
export function countMatching({ database }: Connection, part: string, limit: number): number {
  const count = database
    .prepare<[string, number], number>(
      "SELECT count(*) FROM (SELECT 1 FROM store_search WHERE store_search MATCH ? LIMIT ?)",
    )
    .pluck();
  return count.get(part, limit) ?? 0;
}

/** Returns the best matches that pass the filters, as SQLite ranks them. A few are filtered in each step. */
export async function bestPassing(search: RecordSearch, step: Step): Promise<readonly RankedRecord[]> {
  const ranked = await step((connection) => rankedNumbers(connection, search));
  const best: RankedRecord[] = [];
  let atOnce = Math.max(passedFirst, search.limit);
  for (let from = 0; from < ranked.length && best.length < search.limit;) {
    const some = ranked.slice(from, from + Math.min(atOnce, passedAtOnce));
    from += some.length;
    atOnce *= 2;
    const numbers = some.map(({ record }) => record);
    const found = await step((connection) => passing(connection, search, numbers));
    const places = new Map(found.map((each) => [each.record, each]));
    for (const { record, rank } of some) {
      const place = places.get(record);
      if (place !== undefined) best.push({ session: place.session, seq: place.seq, rank });
    }
  }
  return best.slice(0, search.limit);
}

/** Returns the numbers of all matches as SQLite ranks them, the best first, without the filters. */
function rankedNumbers(
  { database }: Connection,
  { parts }: RecordSearch,
): readonly { readonly record: number; readonly rank: number }[] {
  return database
    .prepare<[string], { readonly record: number; readonly rank: number }>(
      `SELECT rowid AS record, bm25(store_search, 1.0, 1.0, 0.0, 1.0) AS rank FROM store_search
       WHERE store_search MATCH ? ORDER BY rank, rowid DESC`,
    )
    .all(parts.join(" AND "));
}

/** Returns the hit of a ranked record, or null when the record has changed since it was ranked. */
export function hitOf(
  { rows: coder }: StoreContext,
  connection: Connection,
  plan: SearchPlan,
  sessions: SessionFilter,
  { session, seq, rank }: RankedRecord,
): SearchHit | null {
  const { statements } = connection;
  const [found] = statements.readRecords.ascending.all(session, seq - 1, seq + 1, 1);
  const shown = sessions.shownBy(connection, session, seq);
  if (found === undefined || shown === undefined) return null;
  const owner = shown.session === session ? checkedSession(shown) : statements.findSession.get(session);
  if (owner === undefined) return null;
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
    // A rank of zero must not become a score of minus zero.
    score: rank === 0 ? 0 : -rank,
    ...searchSnippet(plan, text.text, matches),
  };
}

function clauseText({ words, isPrefix, isStem, name }: SearchClause): string {
  // A record with the word itself matches twice, and ranks before one with another form of it.
  if (isStem) return `({words stems} : "${words.join(" ")}" OR {words names} : "${name ?? ""}")`;
  const phrase = `"${words.join(" ")}"${isPrefix ? " *" : ""}`;
  const columns = words.length === 1 ? "{words names}" : "words";
  return `(${columns} : ${phrase}${name === null ? "" : ` OR {words names} : "${name}"`})`;
}

const timeOf = "coalesce(r.ts_ms, r.stored_at_ms, 0)";

/** Returns the conditions on the columns of a record, each with its AND. */
function filtersOf({ role, sinceMs, untilMs }: SearchQuery, isCoded: boolean): Condition {
  const wanted = [
    ["r.role = ?", isCoded ? undefined : role],
    [`${timeOf} >= ?`, sinceMs],
    [`${timeOf} < ?`, untilMs],
  ] as const;
  const given = wanted.flatMap(([sql, value]) => (value === undefined ? [] : [{ sql, value }]));
  return { sql: given.map(({ sql }) => ` AND ${sql}`).join(""), values: given.map(({ value }) => value) };
}
