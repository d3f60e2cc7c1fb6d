import type { SearchQuery } from "@throughline/core";
import type { SearchPlan, SearchScope } from "@throughline/core/internal";
import { agentOf, type Layout, tenantsOf } from "./layout.ts";
import { canHold } from "./row-values.ts";
import { queriesOfLabels, queryOfAll } from "./search-vector.ts";
import type { StoreContext } from "./store-context.ts";

export interface Statement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** Holds the filters of a search as parts of a statement. A part binds its parameters when it is used. */
export interface SearchParts {
  /** Adds a parameter of the statement, and returns its name. */
  bind(value: unknown): string;
  /** Holds conditions on a document `d`, without its words. */
  readonly filters: readonly string[];
  /** States whether the search asks all nodes of Citus. */
  readonly isSpread: boolean;
  /** Names the tenant of the search where a statement would take it from another row. */
  readonly layout: Layout;
  /** Returns a query for the session that shows the document `d`, with no row when no session passes the filters. */
  sharer(): string;
  /** Returns the last seq that passing sessions show of a number, or null; `row` has the number and the tenant. */
  shownTo(row: string): string;
  /** States whether the filters name a key or an id, so that few sessions pass. */
  readonly isNarrow: boolean;
  /** Returns the documents of the sessions that pass. */
  own(): string;
  readonly values: readonly unknown[];
}

/** Holds one way to find candidates, as parts of a statement. */
export interface Candidates {
  /** Holds a query for the numbers of documents and `order`. */
  sql(parts: SearchParts): string;
  /** Lists the columns that sort the candidates, all descending, with their types. */
  readonly order: Readonly<Record<string, string>>;
  /** States whether all records are candidates, in the order of their primary key. */
  readonly isEveryRecord: boolean;
}

/** Returns false for filters that no column can hold, because no session passes them. */
export function canPass(
  { agentId = "", key = "", sessionId = "", role = "" }: SearchQuery,
  scope: SearchScope,
): boolean {
  return canHold([scope.namespace, agentId, key, sessionId, role]);
}

/** Returns the parts of a new statement. */
export function searchParts(
  { schema, tokenOf, found: { layout: given, isDistributed } }: StoreContext,
  query: SearchQuery,
  scope: SearchScope,
): SearchParts {
  const { agentId, key, sessionId, role, sinceMs, untilMs } = query;
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const filters: string[] = [];
  const token = tokenOf(scope.namespace, "search");
  const columns = sessionColumns(token !== null);
  for (const label of queriesOfLabels(scope, token)) filters.push(holds(bind(label)));
  if (role !== undefined && token === null) filters.push(`d.role = ${bind(role)}`);
  if (sinceMs !== undefined) filters.push(`d.ts_ms >= ${bind(Math.ceil(sinceMs))}`);
  if (untilMs !== undefined) filters.push(`d.ts_ms < ${bind(Math.ceil(untilMs))}`);
  const tenants = tenantsOf(given, agentOf(query)).map((each) => `${bind(each)}::bigint`);
  const layout = inTenant(given, tenants[0]);
  filters.push(...tenants.map((each) => `d.tenant = ${each}`));
  const wanted = bindOnce((): readonly string[] => [
    `namespace = ${bind(scope.namespace)}`,
    ...(agentId === undefined ? [] : [`agent_id = ${bind(agentId)}`]),
    ...tenants.map((each) => `tenant = ${each}`),
    ...(key === undefined ? [] : [`key = ${bind(key)}`]),
    ...(sessionId === undefined ? [] : [`session_id = ${bind(sessionId)}`]),
    ...(scope.state === "any" ? [] : [`archived = ${scope.state === "archived"}`]),
  ]);
  const passes = (row: string): string =>
    wanted()
      .map((condition) => `${row}.${condition}`)
      .join(" AND ");
  return {
    bind,
    filters,
    isSpread: isDistributed && given.name === "tenant" && tenants.length === 0,
    layout,
    sharer: () => (key === undefined ? anySharer : sharerOfKey)({ schema, layout, columns }, passes),
    shownTo: (row) => shownTo(schema, layout, passes, row),
    isNarrow: key !== undefined || sessionId !== undefined,
    own() {
      // The index of session ids has them in lower case.
      const named = sessionId === undefined ? "" : ` AND lower(s.session_id) = lower(${bind(sessionId)})`;
      return ownDocuments(schema, layout, passes("s") + named);
    },
    values,
  };
}

/** Returns a layout whose conditions name the one tenant, because Citus asks one node only if each table names it. */
function inTenant(layout: Layout, tenant: string | undefined): Layout {
  return tenant === undefined ? layout : { ...layout, and: (row) => layout.and(row, tenant) };
}

/** Binds parameters at the first use, because PostgreSQL knows no type of a parameter that is not used. */
function bindOnce<Result>(make: () => Result): () => Result {
  let made: { readonly result: Result } | null = null;
  return () => (made ??= { result: make() }).result;
}

/** Returns the condition that the document `d` matches a tsquery. */
export function holds(query: string): string {
  return `d.words OPERATOR(pg_catalog.@@) ${query}::tsquery`;
}

/** Finds the records with every word, the ones with the best rank of PostgreSQL first. */
export function candidatesOfAll({ schema, found: { layout } }: StoreContext, plan: SearchPlan): Candidates {
  // Under a codec nothing may be left of a query. Its records are then found in their texts. Those of the session that
  // was created last come first.
  const isEveryRecord = plan.clauses.length === 0;
  return {
    isEveryRecord,
    sql({ bind, filters, isNarrow, own }) {
      if (isEveryRecord)
        return `SELECT ${layout.first("d.tenant")}d.session_no, d.seq, 0::real AS rank
  FROM ${isNarrow ? own() : `${schema}.search_documents`} d WHERE ${["true", ...filters].join(" AND ")}`;
      const words = bind(queryOfAll(plan));
      return `SELECT ${layout.first("d.tenant")}d.session_no, d.seq, ts_rank(d.words, ${words}::tsquery, 1) AS rank
  FROM ${schema}.search_documents d WHERE ${[holds(words), ...filters].join(" AND ")}`;
    },
    order: { rank: "real", session_no: "bigint", seq: "bigint" },
  };
}

/**
 * Builds the statement that finds one page of ranked records with their sessions, behind the sort position `after`. It
 * forces three steps: the candidates, their sessions, and the records of one page. Without these steps the planner
 * reads whole tables, because it expects an unknown word in one of two hundred documents. Sessions are looked up in the
 * order of the candidates, until the page is full.
 */
export function pageStatement(
  context: StoreContext,
  parts: SearchParts,
  candidates: Candidates,
  page: CandidatePage,
): Statement {
  const { schema } = context;
  const { layout, values } = parts;
  const found = candidates.sql(parts);
  const types = { ...candidates.order, ...(layout.name === "plain" ? {} : { tenant: "bigint" }) };
  const steps = parts.isSpread ? spreadSteps : candidates.isEveryRecord ? everyRecordSteps : rankedSteps;
  const { first, from, end, join } = steps(parts, { found, types, page });
  const sql = `
${first}
SELECT h.*, r.id, r.parent_id, r.type, r.side, r.ts_ms, r.stored_at_ms, r.bytes, r.crc, r.form, r.rest, r.coded,
  (SELECT b.content FROM ${schema}.payloads b WHERE b.session_no = h.session_no AND b.hash = r.rest_hash${layout.and("b", "h.tenant")}) AS rest_payload${checkedSource(context, layout, "h.tenant")}
FROM ${from} ${join("h.session_id IS NOT NULL", `(SELECT * FROM ${schema}.records r WHERE r.session_no = h.session_no AND r.seq = h.seq${layout.and("r", "h.tenant")} LIMIT 1) r`)}
ORDER BY ${descending("h", types)}${end}`;
  return { sql, values };
}

/**
 * Returns the columns of the source of the record `r`, with their comma. Under a codec they tell a damaged record from one
 * whose key is missing; a plain record is read without them.
 */
export function checkedSource({ schema, rows }: StoreContext, layout: Layout, tenant: string): string {
  if (!rows.isCoded) return "";
  return `, r.source, (SELECT b.content FROM ${schema}.payloads b
    WHERE b.session_no = r.session_no AND b.hash = r.source_hash${layout.and("b", tenant)}) AS source_payload`;
}

interface CandidatePage {
  readonly size: number;
  readonly after: readonly unknown[] | null;
}

interface StepParts {
  readonly found: string;
  /** Holds the types of the columns that sort. */
  readonly types: Readonly<Record<string, string>>;
  readonly page: CandidatePage;
}

/** Holds the steps that find one page of candidates with their sessions, as parts of a statement. */
interface Steps {
  readonly first: string;
  readonly from: string;
  readonly end: string;
  join(condition: string, table: string): string;
}

const hits = `SELECT d.*, s.namespace, s.agent_id, s.key, s.archive_id, s.session_id, s.base_id`;
const crossJoin: Steps["join"] = (_condition, table) => `CROSS JOIN LATERAL ${table}`;

function descending(row: string, types: StepParts["types"]): string {
  return Object.keys(types)
    .map((column) => `${row}.${column} DESC`)
    .join(", ");
}

/** Returns the condition that the row comes behind the page before, with its WHERE. */
function behind({ bind }: SearchParts, row: string, types: StepParts["types"], after: CandidatePage["after"]): string {
  if (after === null) return "";
  const columns = Object.keys(types).map((column) => `${row}.${column}`);
  const place = Object.values(types).map((type, index) => `${bind(after[index])}::${type}`);
  return `WHERE (${columns.join(", ")}) < (${place.join(", ")})`;
}

/**
 * Citus collects a step of several nodes at one of them, and cannot join the result with their tables. It sends the
 * whole statement to each node if it is one query.
 */
function spreadSteps(parts: SearchParts, { found, types, page }: StepParts): Steps {
  const limit = parts.bind(page.size);
  const rows = `SELECT * FROM (${found}) c ${behind(parts, "c", types, page.after)}`;
  const from = `(${hits} FROM (${rows}) d CROSS JOIN LATERAL (${parts.sharer()}) s) h`;
  return { first: "", from, end: ` LIMIT ${limit}`, join: crossJoin };
}

function rankedSteps(parts: SearchParts, { found, types, page }: StepParts): Steps {
  const first = `WITH c AS MATERIALIZED (
  ${found}
), h AS MATERIALIZED (
  ${hits}
  FROM (SELECT * FROM c ${behind(parts, "c", types, page.after)} ORDER BY ${descending("c", types)}) d CROSS JOIN LATERAL (${parts.sharer()}) s
  ORDER BY ${descending("d", types)} LIMIT ${parts.bind(page.size)}
)`;
  return { first, from: "h", end: "", join: crossJoin };
}

/**
 * Reads the candidates along their primary key, because sorting all of them for each page would take longer with each
 * page. A candidate whose session does not pass is a row without a session, so that a page is never short before the
 * last one.
 */
function everyRecordSteps(parts: SearchParts, { found, types, page }: StepParts): Steps {
  // The rank, which comes first, is the same everywhere.
  const keys = Object.fromEntries(Object.entries(types).slice(1));
  const after = page.after?.slice(1) ?? null;
  const first = `WITH h AS MATERIALIZED (
  ${hits}
  FROM (SELECT * FROM (${found}) c ${behind(parts, "c", keys, after)} ORDER BY ${descending("c", keys)} LIMIT ${parts.bind(page.size)}) d
  LEFT JOIN LATERAL (${parts.sharer()}) s ON true
)`;
  return { first, from: "h", end: "", join: (condition, table) => `LEFT JOIN LATERAL ${table} ON ${condition}` };
}

/**
 * Returns the columns of the session that shows the document `d`. A codec binds a record that sessions share to the id of
 * the session that wrote it.
 */
function sessionColumns(isCoded: boolean): string {
  const writer = isCoded
    ? "(SELECT b.id FROM unnest(s.base_nos, s.base_ids) AS b (no, id) WHERE b.no = d.session_no LIMIT 1)"
    : "NULL";
  return `s.namespace, s.agent_id, s.key, s.archive_id, s.session_id, ${writer} AS base_id`;
}

interface SharerParts {
  readonly schema: string;
  readonly layout: Layout;
  /** Lists the columns of the session that is found. */
  readonly columns: string;
}

/** Tests whether a session shows the record, as its own or as a shared one. */
const shows = (spans: string): string => `EXISTS (
    SELECT FROM unnest(${spans}) AS b (no, to_seq) WHERE b.no = d.session_no AND b.to_seq >= d.seq)`;

/**
 * Finds the session that wrote the record. If that session is purged or does not match, it finds the oldest matching
 * fork that shows the record. The sum in ORDER BY keeps the planner from walking all sessions by number in place of the
 * index of forks. LIMIT makes it find the writer by number first. Without statistics it would read all sessions of an
 * agent for each candidate. The last LIMIT leaves out the forks of a record whose writer was found.
 */
function anySharer({ schema, layout, columns }: SharerParts, passes: (row: string) => string): string {
  const writer = `(SELECT * FROM ${schema}.sessions w WHERE w.session_no = d.session_no${layout.and("w", "d.tenant")} LIMIT 1)`;
  return `(SELECT ${columns} FROM ${writer} s WHERE ${passes("s")}
  UNION ALL (
    SELECT ${columns} FROM ${schema}.sessions s
    WHERE s.base_nos OPERATOR(pg_catalog.@>) ARRAY[d.session_no]${layout.and("s", "d.tenant")} AND ${passes("s")} AND ${shows("s.base_nos, s.base_to_seqs")}
      AND NOT EXISTS (SELECT FROM ${writer} o WHERE ${passes("o")})
    ORDER BY s.session_no + 0 LIMIT 1
  )) LIMIT 1`;
}

/** Finds the oldest session of the key that holds the record, as its own or as a shared one. */
function sharerOfKey({ schema, layout, columns }: SharerParts, passes: (row: string) => string): string {
  return `SELECT ${columns} FROM ${schema}.sessions s
  WHERE ${passes("s")}${layout.and("s", "d.tenant")} AND ${shows("s.base_nos OPERATOR(pg_catalog.||) s.session_no, s.base_to_seqs OPERATOR(pg_catalog.||) s.last_seq")}
  ORDER BY s.session_no + 0 LIMIT 1`;
}

/** Returns the documents of passing sessions, also those that they share with others. */
function ownDocuments(schema: string, layout: Layout, condition: string): string {
  return `(SELECT d.* FROM (
    SELECT b.no, max(b.to_seq) AS to_seq${layout.last("s.tenant")} FROM ${schema}.sessions s CROSS JOIN LATERAL unnest(
      s.base_nos OPERATOR(pg_catalog.||) s.session_no, s.base_to_seqs OPERATOR(pg_catalog.||) s.last_seq) AS b (no, to_seq)
    WHERE ${condition} GROUP BY b.no${layout.last("s.tenant")}
  ) b CROSS JOIN LATERAL (
    SELECT * FROM ${schema}.search_documents d WHERE d.session_no = b.no AND d.seq <= b.to_seq${layout.and("d", "b.tenant")} OFFSET 0
  ) d)`;
}

/** Finds out about all records of a number at once, because a frequent word has many. */
function shownTo(schema: string, layout: Layout, passes: (row: string) => string, row: string): string {
  return `(SELECT CASE WHEN EXISTS (
      SELECT FROM (SELECT * FROM ${schema}.sessions w WHERE w.session_no = ${row}.session_no${layout.and("w", `${row}.tenant`)} LIMIT 1) w WHERE ${passes("w")}
    ) THEN ${Number.MAX_SAFE_INTEGER} ELSE (
      SELECT max(b.to_seq) FROM ${schema}.sessions s CROSS JOIN LATERAL unnest(s.base_nos, s.base_to_seqs) AS b (no, to_seq)
      WHERE s.base_nos OPERATOR(pg_catalog.@>) ARRAY[${row}.session_no]${layout.and("s", `${row}.tenant`)} AND b.no = ${row}.session_no AND ${passes("s")}
    ) END)`;
}
