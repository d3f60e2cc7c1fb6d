import type { SearchHit, SearchQuery, SessionRecord } from "@throughline/core";
import {
  findMatches,
  searchSnippet,
  searchText,
  type SearchPlan,
  type SearchScope,
} from "@throughline/core/store-search";
import type { Connection } from "./open-connection.ts";
import { recordOf, rowOf } from "./record-rows.ts";
import { placeOf, refOf } from "./session-rows.ts";
import { spansOf, type SessionSpan } from "./session-spans.ts";
import type { Session, SessionRow } from "./statements.ts";
import type { StoreScene } from "./store-scene.ts";

/** A record that fits, best first. */
export interface RankedRecord {
  readonly session: Session;
  readonly seq: number;
  readonly rank: number;
}

interface Condition {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/** So many of the newest matches are ranked by their text where SQLite's ranking would take too long. */
const newestMatches = 200;
/**
 * With more matches than this only the newest are ranked: a word that is everywhere tells records apart by their age at
 * most. SQLite's own ranking first counts every match of every word in the whole index.
 */
const mostRanked = 20_000;
/** The best so many are looked at one by one whether the filters let them through; beyond, the database joins. */
const mostLookedAt = 2000;

const rank = "bm25(store_search, 1.0, 1.0, 0.0)";

/** A record that fits, before anybody has ranked it. */
export interface FoundRecord extends Omit<RankedRecord, "rank"> {
  /** Its number: records are numbered in the order of their commits. */
  readonly record: number;
}

/** A query as the database takes it. */
export interface RecordSearch {
  readonly match: string;
  readonly where: string;
  readonly values: readonly (string | number)[];
  readonly limit: number;
  /** The number of the newest record there is. */
  readonly newest: number;
  /** So many of the newest are looked at first. */
  readonly most: number;
  /** True when a word has to be looked for together with others, or by its beginning: that takes long however few it finds. */
  readonly isDear: boolean;
}

/** What to ask the database. Words in one piece count as much as their parts; the names of tools only filter. */
export function prepareSearch(connection: Connection, query: SearchQuery, scope: SearchScope): RecordSearch {
  const keyed = query.key === undefined ? null : spansOfKey(connection, query, scope);
  const conditions = [...filters(query, scope), ...(keyed === null ? [] : [within(keyed)])];
  const { clauses } = scope.plan;
  return {
    match: matchText(scope),
    where: conditions.map(({ sql }) => ` AND ${sql}`).join(""),
    values: conditions.flatMap((condition) => condition.values),
    limit: scope.limit,
    newest: newestRecord(connection),
    most: Math.max(newestMatches, scope.limit),
    isDear: clauses.some(({ words, isPrefix }) => isPrefix || words.length > 1),
  };
}

/**
 * The newest that fit, in one pass that ends when there are enough. Not in several over parts of the log: to find a part
 * of it FTS5 goes through the whole list of every word.
 */
export function findNewest({ database }: Connection, { match, where, values, most }: RecordSearch): FoundRecord[] {
  return database
    .prepare<unknown[], FoundRecord>(
      `SELECT r.record, r.session, r.seq
       FROM store_search f CROSS JOIN store_records r ON r.record = f.rowid CROSS JOIN store_sessions s ON s.session = r.session
       WHERE store_search MATCH ?${where} ORDER BY f.rowid DESC LIMIT ?`,
    )
    .all(match, ...values, most);
}

/** Whether SQLite is to rank all matches, of which these are the newest: where it is quick, it knows more of words. */
export function isWorthRanking(search: RecordSearch, newest: readonly FoundRecord[]): boolean {
  if (search.isDear || newest.length < search.most) return false;
  const [first, last] = [newest.at(-1)?.record ?? 0, newest[0]?.record ?? 0];
  return (newest.length * search.newest) / Math.max(last - first, 1) <= mostRanked;
}

/** What fits, as SQLite ranks it. */
export function rankedRecords(connection: Connection, search: RecordSearch): readonly RankedRecord[] {
  return bestOf(connection, search) ?? joined(connection, search);
}

function newestRecord({ database }: Connection): number {
  return database.prepare<[], number | null>("SELECT max(record) FROM store_records").pluck().get() ?? 0;
}

/** Takes the best matches first and asks the filters of each; null when they let too few through. */
function bestOf({ database }: Connection, { match, where, values, limit }: RecordSearch): RankedRecord[] | null {
  const ranked = database.prepare<[string, number], { readonly record: number; readonly rank: number }>(
    `SELECT rowid AS record, ${rank} AS rank FROM store_search WHERE store_search MATCH ? ORDER BY rank, rowid DESC LIMIT ?`,
  );
  const place = database.prepare<unknown[], Omit<RankedRecord, "rank">>(
    `SELECT r.session, r.seq FROM store_records r JOIN store_sessions s ON s.session = r.session WHERE r.record = ?${where}`,
  );
  for (let most = limit * 2; ; most *= 8) {
    const best = ranked.all(match, most);
    const found: RankedRecord[] = [];
    for (const { record, rank: value } of best) {
      const at = place.get(record, ...values);
      if (at !== undefined) found.push({ ...at, rank: value });
      if (found.length === limit) return found;
    }
    if (best.length < most) return found;
    if (most >= mostLookedAt) return null;
  }
}

function joined({ database }: Connection, { match, where, values, limit }: RecordSearch): readonly RankedRecord[] {
  return database
    .prepare<unknown[], RankedRecord>(
      `SELECT r.session, r.seq, ${rank} AS rank
       FROM store_search f JOIN store_records r ON r.record = f.rowid JOIN store_sessions s ON s.session = r.session
       WHERE store_search MATCH ?${where} ORDER BY rank, r.record DESC LIMIT ?`,
    )
    .all(match, ...values, limit);
}

/** The hit of a ranked record; null when it has changed since it was ranked. */
export function hitOf(
  { rows: coder }: StoreScene,
  { statements }: Connection,
  query: SearchQuery,
  plan: SearchPlan,
  { session, seq, rank }: RankedRecord,
): SearchHit | null {
  const owner = statements.findSession.get(session);
  const [found] = statements.readRecords.ascending.all(session, seq - 1, seq + 1, 1);
  if (owner === undefined || found === undefined) return null;
  const stored = recordOf(coder, placeOf(owner), rowOf(statements, found), "record");
  const text = searchText(stored.record);
  if (text === null || findMatches(plan, text.text) === null) return null;
  const shown = query.key === undefined ? owner : (sharerOf({ statements }, owner, seq, query) ?? owner);
  return {
    ref: refOf(shown),
    sessionId: shown.session_id,
    seq,
    id: stored.id,
    role: roleOf(stored.record),
    tsMs: stored.tsMs,
    score: -rank,
    ...searchSnippet(plan, text.text),
  };
}

/** Every word in quotes, so that nothing in it is an operator. Words are letters and digits only. */
function matchText({ plan, toolWord }: SearchScope): string {
  const clauses = plan.clauses.map(({ words, isPrefix, name }) => {
    const phrase = `"${words.join(" ")}"${isPrefix ? " *" : ""}`;
    const columns = words.length === 1 ? "{words names}" : "words";
    return `(${columns} : ${phrase}${name === null ? "" : ` OR {words names} : "${name}"`})`;
  });
  return [...clauses, ...(toolWord === null ? [] : [`(tools : "${toolWord}")`])].join(" AND ");
}

const timeOf = "coalesce(r.ts_ms, r.stored_at_ms, 0)";

function filters(
  { agentId, role, sinceMs, untilMs, key }: SearchQuery,
  { namespace, state }: SearchScope,
): Condition[] {
  const found: Condition[] = [];
  // Records of a fork's origin may lie in another place than the fork; with a key the spans say it all.
  if (key === undefined) {
    found.push({ sql: "s.namespace = ?", values: [namespace] });
    if (agentId !== undefined) found.push({ sql: "s.agent_id = ?", values: [agentId] });
    if (state !== "any") found.push({ sql: "s.archived = ?", values: [state === "archived" ? 1 : 0] });
  }
  if (role !== undefined) found.push({ sql: "r.role = ?", values: [role] });
  if (sinceMs !== undefined) found.push({ sql: `${timeOf} >= ?`, values: [sinceMs] });
  if (untilMs !== undefined) found.push({ sql: `${timeOf} < ?`, values: [untilMs] });
  return found;
}

function within(spans: readonly SessionSpan[]): Condition {
  if (spans.length === 0) return { sql: "FALSE", values: [] };
  const values = spans.flatMap(({ owner, afterSeq, toSeq }) => [
    owner.session,
    afterSeq,
    Math.min(toSeq, Number.MAX_SAFE_INTEGER),
  ]);
  const each = spans.map(() => "(r.session = ? AND r.seq > ? AND r.seq <= ?)");
  return { sql: `(${each.join(" OR ")})`, values };
}

function sessionsOfKey(
  { database }: Pick<Connection, "database">,
  query: SearchQuery,
  scope: SearchScope,
): SessionRow[] {
  const { key = "", agentId } = query;
  const agent = agentId === undefined ? "" : " AND agent_id = ?";
  const state = scope.state === "any" ? "" : ` AND archived = ${scope.state === "archived" ? 1 : 0}`;
  return database
    .prepare<unknown[], SessionRow>(`SELECT * FROM store_sessions WHERE namespace = ? AND key = ?${agent}${state}`)
    .all(scope.namespace, key, ...(agentId === undefined ? [] : [agentId]));
}

function spansOfKey(
  connection: Pick<Connection, "database" | "statements">,
  query: SearchQuery,
  scope: SearchScope,
): SessionSpan[] {
  return sessionsOfKey(connection, query, scope).flatMap((row) => [...spansOf(connection.statements, row)]);
}

/** The session of the key that shows the record as its own. */
function sharerOf(
  { statements }: Pick<Connection, "statements">,
  owner: SessionRow,
  seq: number,
  { key, agentId }: SearchQuery,
): SessionRow | undefined {
  return statements.sharersOf
    .all(owner.session, seq)
    .find((each) => each.key === key && (agentId === undefined || each.agent_id === agentId));
}

function roleOf(record: SessionRecord): string | null {
  return searchText(record)?.role ?? null;
}
