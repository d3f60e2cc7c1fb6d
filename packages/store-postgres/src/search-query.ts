import type { SearchHit, SearchQuery } from "@throughline/core";
import {
  findMatches,
  readSearchQuery,
  type SearchPlan,
  type SearchScope,
  searchSnippet,
  searchText,
} from "@throughline/core/internal";
import type { Layout } from "./layout.ts";
import { refOf, wholeRecordOf, type DatabaseRow } from "./row-values.ts";
import { lexeme } from "./search-lexeme.ts";
import type { StoreContext } from "./store-context.ts";

interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/**
 * Yields the best hits first. The index finds records with every word. Phrases are then checked in the text itself, so
 * that a hit always matches what it shows.
 */
export async function* searchHits(
  context: StoreContext,
  query: SearchQuery,
  check: () => Promise<void>,
): AsyncGenerator<SearchHit> {
  const scope = readSearchQuery(query);
  if (scope.plan.clauses.length === 0) return;
  let left = scope.limit;
  const size = Math.max(50, scope.limit * 2);
  for (let after: CandidatePlace | null = null; ;) {
    await check();
    const statement = candidateStatement(context, query, scope, { size, after });
    if (statement === null) return;
    const rows = await context.pool.run(statement.sql, statement.values, { signal: query.signal, isRead: true });
    for (const row of rows) {
      const hit = hitOf(context, scope.plan, row);
      if (hit === null) continue;
      yield hit;
      if (--left === 0) return;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) return;
    const tenant = context.found.layout.values(refOf(last));
    after = { rank: Number(last["rank"]), sessionNo: String(last["session_no"]), seq: Number(last["seq"]), tenant };
  }
}

/** Holds the sort position of a candidate, so that additions and purges between two pages shift no other candidate. */
interface CandidatePlace {
  /** The rank must be exact, so a server that rounds numbers is refused when the store is opened. */
  readonly rank: number;
  readonly sessionNo: string;
  readonly seq: number;
  /** This is empty in the plain layout. */
  readonly tenant: readonly string[];
}

/**
 * Builds the statement that finds ranked records with their sessions. It forces three steps: the documents with the
 * words, their sessions, and the records of one page. Without these steps the planner reads whole tables, because it
 * expects an unknown word in one of two hundred documents.
 */
function candidateStatement(
  { schema, found: { layout } }: StoreContext,
  query: SearchQuery,
  scope: SearchScope,
  page: { readonly size: number; readonly after: CandidatePlace | null },
): Statement | null {
  const { agentId, key, sessionId, role, sinceMs, untilMs } = query;
  const texts = [scope.namespace, agentId ?? "", key ?? "", sessionId ?? "", role ?? ""];
  if (!texts.every((text) => text.isWellFormed() && !text.includes("\0"))) return null;
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const words = bind(queryText(scope.plan));
  const found = [`d.words OPERATOR(pg_catalog.@@) ${words}::tsquery`];
  if (scope.toolWord !== null)
    found.push(`d.words OPERATOR(pg_catalog.@@) ${bind(lexeme(`tool/${scope.toolWord}`))}::tsquery`);
  if (role !== undefined) found.push(`d.role = ${bind(role)}`);
  if (sinceMs !== undefined) found.push(`d.ts_ms >= ${bind(Math.ceil(sinceMs))}`);
  if (untilMs !== undefined) found.push(`d.ts_ms < ${bind(Math.ceil(untilMs))}`);
  const wanted = [["namespace", bind(scope.namespace)]];
  if (agentId !== undefined) {
    wanted.push(["agent_id", bind(agentId)]);
    for (const tenant of layout.values({ namespace: scope.namespace, agentId })) {
      const place = `${bind(tenant)}::bigint`;
      found.push(`d.tenant = ${place}`);
      wanted.push(["tenant", place]);
    }
  }
  if (key !== undefined) wanted.push(["key", bind(key)]);
  if (sessionId !== undefined) wanted.push(["session_id", bind(sessionId)]);
  if (scope.state !== "any") wanted.push(["archived", scope.state === "archived" ? "true" : "false"]);
  const passes = (row: string): string => wanted.map(([name, value]) => `${row}.${name} = ${value}`).join(" AND ");
  const { after, size } = page;
  // Candidates with equal ranks are sorted by session number and seq, newest first.
  const behind =
    after === null
      ? ""
      : `WHERE (d.rank, d.session_no, d.seq${layout.last("d.tenant")}) < (${bind(after.rank)}::real, ${bind(after.sessionNo)}::bigint, ${bind(after.seq)}::bigint${after.tenant.map((tenant) => `, ${bind(tenant)}::bigint`).join("")})`;
  const newest = (row: string): string => layout.last(`${row}.tenant DESC`);
  const sql = `
WITH d AS MATERIALIZED (
  SELECT ${layout.first("d.tenant")}d.session_no, d.seq, ts_rank(d.words, ${words}::tsquery, 1) AS rank
  FROM ${schema}.search_documents d WHERE ${found.join(" AND ")}
), h AS MATERIALIZED (
  SELECT d.*, s.namespace, s.agent_id, s.key, s.archive_id, s.session_id
  FROM d CROSS JOIN LATERAL (${key === undefined ? anySharer(schema, layout, passes) : sharerOfKey(schema, layout, passes)}) s
  ${behind} ORDER BY d.rank DESC, d.session_no DESC, d.seq DESC${newest("d")} LIMIT ${bind(size)}
)
SELECT h.rank, h.session_no, h.namespace, h.agent_id, h.key, h.archive_id, h.session_id, r.seq, r.id, r.parent_id, r.type, r.side, r.ts_ms,
  r.stored_at_ms, r.bytes, r.crc, r.form, r.rest, r.coded, NULL AS base_id,
  (SELECT b.content FROM ${schema}.payloads b WHERE b.session_no = h.session_no AND b.hash = r.rest_hash${layout.and("b", "h.tenant")}) AS rest_payload
FROM h CROSS JOIN LATERAL (SELECT * FROM ${schema}.records r WHERE r.session_no = h.session_no AND r.seq = h.seq${layout.and("r", "h.tenant")} LIMIT 1) r
ORDER BY h.rank DESC, h.session_no DESC, h.seq DESC${newest("h")}`;
  return { sql, values };
}

const sessionColumns = "s.namespace, s.agent_id, s.key, s.archive_id, s.session_id";

/** Tests whether a session shows the record, as its own or as a shared one. */
const shows = (spans: string): string => `EXISTS (
    SELECT FROM unnest(${spans}) AS b (no, to_seq) WHERE b.no = d.session_no AND b.to_seq >= d.seq)`;

/**
 * Finds the session that wrote the record. If that session is purged or does not match, it finds the oldest matching
 * fork that shows the record. The sum in ORDER BY keeps the planner from walking all sessions by number in place of the
 * index of forks. LIMIT makes it find the writer by number first. Without statistics it would read all sessions of an
 * agent for each candidate.
 */
function anySharer(schema: string, layout: Layout, passes: (row: string) => string): string {
  const writer = `(SELECT * FROM ${schema}.sessions w WHERE w.session_no = d.session_no${layout.and("w", "d.tenant")} LIMIT 1)`;
  return `SELECT ${sessionColumns} FROM ${writer} s WHERE ${passes("s")}
  UNION ALL (
    SELECT ${sessionColumns} FROM ${schema}.sessions s
    WHERE s.base_nos OPERATOR(pg_catalog.@>) ARRAY[d.session_no]${layout.and("s", "d.tenant")} AND ${passes("s")} AND ${shows("s.base_nos, s.base_to_seqs")}
      AND NOT EXISTS (SELECT FROM ${writer} o WHERE ${passes("o")})
    ORDER BY s.session_no + 0 LIMIT 1
  )`;
}

/** Finds the oldest session of the key that holds the record, as its own or as a shared one. */
function sharerOfKey(schema: string, layout: Layout, passes: (row: string) => string): string {
  return `SELECT ${sessionColumns} FROM ${schema}.sessions s
  WHERE ${passes("s")}${layout.and("s", "d.tenant")} AND ${shows("s.base_nos OPERATOR(pg_catalog.||) s.session_no, s.base_to_seqs OPERATOR(pg_catalog.||) s.last_seq")}
  ORDER BY s.session_no + 0 LIMIT 1`;
}

function hitOf(context: StoreContext, plan: SearchPlan, row: DatabaseRow): SearchHit | null {
  const ref = refOf(row);
  const stored = wholeRecordOf(context.rows, ref, row);
  if (stored === null) return null;
  const text = searchText(stored.record);
  if (text === null || findMatches(plan, text.text) === null) return null;
  const { seq, id, tsMs } = stored;
  const place = { ref, sessionId: String(row["session_id"]), seq, id, tsMs };
  return { ...place, role: text.role, score: Number(row["rank"]), ...searchSnippet(plan, text.text) };
}

/** Quotes every word, so that no character in it is an operator. */
function queryText({ clauses }: SearchPlan): string {
  return clauses
    .map(({ words, isPrefix, name }) => {
      const each = words.map((word, index) => `${lexeme(word)}${isPrefix && index === words.length - 1 ? ":*" : ""}`);
      return `(${each.join(" & ")}${name === null ? "" : ` | ${lexeme(name)}`})`;
    })
    .join(" & ");
}
