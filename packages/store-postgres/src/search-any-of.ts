import type { SearchQuery } from "@throughline/core";
import type { SearchClause } from "@throughline/core/internal";
import { agentOf } from "./layout.ts";
import { holds, type Candidates, type SearchParts, type Statement } from "./search-candidates.ts";
import { queryOf } from "./search-vector.ts";
import type { StoreContext } from "./store-context.ts";

/** Limits the candidates that one stem yields. A stem in more documents is frequent. */
const mostCandidates = 20_000;
/** Frequent stems are left out while this many rarer ones remain. */
const enoughRare = 3;
/**
 * A sample of the documents finds frequent stems, because the index reads all documents of a stem to count a part of
 * them. The sample has one page of a hundred, within these limits.
 */
const samplePages = { least: 100, most: 1000 };
/** A stem in fewer documents of the sample is counted by the index, because a small sample errs. */
const leastSampled = 30;
/** Rarities are summed as whole numbers, because a sum of other numbers depends on their order. */
const rarityUnits = 1000;

interface Stem {
  /** Holds the tsquery of the stem. */
  readonly query: string;
  /** Counts the documents that hold the stem. The count of a frequent stem is an estimate. */
  readonly held: number;
}

/** Holds a stem that yields candidates. */
export interface SearchStem extends Stem {
  /** States what the stem adds to the rank of a document. */
  readonly weight: number;
}

export interface StemSearch {
  readonly query: SearchQuery;
  /** States whether row security limits the role. No index then finds words, so one scan finds all stems. */
  readonly isLimited: boolean;
  parts(): SearchParts;
}

/**
 * Counts the documents of each stem, and returns the stems that yield candidates: rare ones, and the least frequent of
 * the others while fewer than three are rare.
 */
export async function findStems(
  context: StoreContext,
  clauses: readonly SearchClause[],
  search: StemSearch,
): Promise<readonly SearchStem[]> {
  const { stems: counted, total } = await count(context, clauses.map(queryOf), search);
  const held = counted.filter((stem) => stem.held > 0).toSorted((one, other) => one.held - other.held);
  const rare = held.filter((stem) => stem.held <= mostCandidates);
  const most = Math.max(total, ...held.map((stem) => stem.held));
  return held.slice(0, Math.max(rare.length, enoughRare)).map((stem) => ({ ...stem, weight: weightOf(stem, most) }));
}

/** Computes the inverse document frequency as BM25 does. */
function weightOf({ held }: Stem, total: number): number {
  return Math.max(1, Math.round(rarityUnits * Math.log(1 + (total - held + 0.5) / (held + 0.5))));
}

/** Converts the rank of the database to the score of a hit. */
export function scoreOf(rank: unknown): number {
  return Number(rank) / rarityUnits;
}

interface StemCounts {
  readonly stems: readonly Stem[];
  /** Counts or estimates all documents. */
  readonly total: number;
}

async function count(
  context: StoreContext,
  queries: readonly string[],
  { query, isLimited, parts }: StemSearch,
): Promise<StemCounts> {
  const given = parts();
  const isScan = isLimited || given.isNarrow;
  const byIndex = given.isSpread ? countsOfNodes : countsByIndex;
  const statement = (isScan ? countsByScan : byIndex)(context, given, queries);
  const asked = { signal: query.signal, isRead: true, agent: agentOf(query) };
  const [row] = await context.pool.run(statement.sql, statement.values, asked);
  const held = (row?.["held"] ?? []) as readonly unknown[];
  const stems = queries.map((each, index) => ({ query: each, held: Number(held[index] ?? 0) }));
  return { stems, total: Number(row?.["total"] ?? 0) };
}

function countEach(queries: readonly string[], { bind }: SearchParts): string {
  return `ARRAY[${queries.map((query) => `count(*) FILTER (WHERE ${holds(bind(query))})`).join(", ")}]`;
}

/**
 * Counts rare stems by the index of words. A rare stem that no session of the search shows counts as absent. LIMIT keeps
 * the planner from reading the whole table in the hope of an early document.
 */
function countsByIndex(context: StoreContext, parts: SearchParts, queries: readonly string[]): Statement {
  const { bind, filters, shownTo, values } = parts;
  const { schema, found } = context;
  const numbers = `d.session_no${found.layout.last("d.tenant")}`;
  const documents = `FROM ${schema}.search_documents d WHERE ${[holds("q.query"), ...filters].join(" AND ")} LIMIT ${mostCandidates + 1}`;
  const sql = `${found.isDistributed ? noSample(queries) : sample(schema, parts, queries)}
  SELECT s.total::float8 / p.share AS total, ARRAY(
    SELECT CASE WHEN s.held[q.place] >= ${leastSampled} AND s.held[q.place]::float8 / p.share > ${mostCandidates}::float8
      THEN s.held[q.place]::float8 / p.share ELSE (
        WITH d AS MATERIALIZED (SELECT ${numbers}, d.seq ${documents})
        SELECT CASE WHEN n.held > ${mostCandidates} OR EXISTS (
          SELECT FROM (SELECT ${numbers}, min(d.seq) AS seq FROM d GROUP BY ${numbers}) d WHERE d.seq <= ${shownTo("d")}
        ) THEN n.held::float8 ELSE 0::float8 END FROM (SELECT count(*) AS held FROM d) n
      ) END
    FROM pg_catalog.unnest(${bind(queries)}::text[]) WITH ORDINALITY AS q (query, place) ORDER BY q.place
  ) AS held FROM s CROSS JOIN p`;
  return { sql, values };
}

/** Does the same with one query for each stem, because Citus plans no query for each row of another. */
function countsOfNodes({ schema }: StoreContext, parts: SearchParts, queries: readonly string[]): Statement {
  const { bind, filters, sharer, values } = parts;
  const held = queries.map((query) => {
    const documents = `${schema}.search_documents d`;
    const condition = [holds(bind(query)), ...filters].join(" AND ");
    return `CASE WHEN EXISTS (SELECT 1 FROM ${documents} CROSS JOIN LATERAL (${sharer()}) s WHERE ${condition} LIMIT 1)
      THEN (SELECT count(*) FROM (SELECT d.seq FROM ${documents} WHERE ${condition} LIMIT ${mostCandidates + 1}) n) ELSE 0 END`;
  });
  return { sql: `SELECT 0 AS total, ARRAY[${held.join(", ")}]::float8[] AS held`, values };
}

/** Returns what counts the stems in a sample of the documents: `p` has its share, and `s` the counts. */
function sample(schema: string, parts: SearchParts, queries: readonly string[]): string {
  const table = `'${schema}.search_documents'::regclass::oid`;
  const { least, most } = samplePages;
  const condition = parts.filters.length === 0 ? "" : ` WHERE ${parts.filters.join(" AND ")}`;
  return `WITH p AS MATERIALIZED (
    SELECT least(1::float8, greatest(${least}::float8, least(${most}::float8, p.pages / 100::float8)) / greatest(1::float8, p.pages)) AS share
    FROM (
      SELECT sum(pg_catalog.pg_relation_size(c.oid))::float8 / 8192::float8 AS pages FROM pg_catalog.pg_class c
      WHERE c.oid = ${table} OR c.oid IN (SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = ${table})
    ) p
  ), s AS MATERIALIZED (
    SELECT count(*) AS total, ${countEach(queries, parts)} AS held
    FROM ${schema}.search_documents d TABLESAMPLE SYSTEM (((SELECT p.share FROM p) * 100::float8)::real) REPEATABLE (1)${condition}
  )`;
}

/** Citus keeps the documents in other tables, whose size this statement does not see. */
function noSample(queries: readonly string[]): string {
  const none = queries.map(() => "0").join(", ");
  return `WITH p AS (SELECT 1::float8 AS share), s AS (SELECT 0::bigint AS total, ARRAY[${none}]::bigint[] AS held)`;
}

/** Counts all stems in one scan of the documents that the role may read, or of the sessions of the search. */
function countsByScan(context: StoreContext, parts: SearchParts, queries: readonly string[]): Statement {
  const { filters, values } = parts;
  const condition = filters.length === 0 ? "" : ` WHERE ${filters.join(" AND ")}`;
  const sql = `SELECT ${countEach(queries, parts)} AS held, count(*) AS total FROM ${scanned(context, parts)}${condition}`;
  return { sql, values };
}

function scanned({ schema }: StoreContext, { isNarrow, own }: SearchParts): string {
  return `${isNarrow ? own() : `${schema}.search_documents`} d`;
}

/** Finds the records with at least one of the stems, those first whose stems are rare, the newest first among equals. */
export function candidatesOfAny(
  context: StoreContext,
  stems: readonly SearchStem[],
  { isLimited }: StemSearch,
): Candidates {
  return {
    isEveryRecord: false,
    sql: (parts) => (isLimited || parts.isNarrow ? byScan(context, parts, stems) : byIndex(context, parts, stems)),
    order: { rank: "bigint", at_ms: "bigint", session_no: "bigint", seq: "bigint" },
  };
}

/** Reads the documents of each stem by the index, and no words. */
function byIndex(context: StoreContext, parts: SearchParts, stems: readonly SearchStem[]): string {
  const { layout } = context.found;
  const numbers = `d.session_no, d.seq, d.at_ms${layout.last("d.tenant")}`;
  // A list of the newest of all nodes would be a step that Citus cannot join with their tables.
  const lists = stems.map((stem) =>
    (stem.held > mostCandidates && !parts.isSpread ? newest : all)(context, parts, stem),
  );
  return `SELECT ${numbers}, sum(d.weight)::bigint AS rank FROM (
    ${lists.join("\n    UNION ALL ")}
  ) d GROUP BY ${numbers}`;
}

function all({ schema, found: { layout } }: StoreContext, { bind, filters }: SearchParts, stem: SearchStem): string {
  const condition = [holds(bind(stem.query)), ...filters].join(" AND ");
  return `SELECT d.session_no, d.seq, d.ts_ms AS at_ms${layout.last("d.tenant")}, ${stem.weight} AS weight
      FROM ${schema}.search_documents d WHERE ${condition}`;
}

/** Returns the newest documents of a frequent stem that the sessions of the search show. */
function newest(context: StoreContext, parts: SearchParts, stem: SearchStem): string {
  const { layout } = parts;
  const numbers = `session_no${layout.last("tenant")}`;
  return `(WITH d AS MATERIALIZED (
      ${all(context, parts, stem)}
    ), n AS MATERIALIZED (
      SELECT n.*, ${parts.shownTo("n")} AS to_seq FROM (SELECT DISTINCT ${numbers} FROM d) n
    )
    SELECT d.* FROM d JOIN n ON n.session_no = d.session_no${layout.and("n", "d.tenant")} AND d.seq <= n.to_seq
    ORDER BY d.at_ms DESC, d.session_no DESC, d.seq DESC LIMIT ${mostCandidates})`;
}

/** Reads each document once, with its words. */
function byScan(context: StoreContext, parts: SearchParts, stems: readonly SearchStem[]): string {
  const { bind, filters } = parts;
  const { layout } = context.found;
  const weights = stems.map(({ query, weight }) => `CASE WHEN ${holds(bind(query))} THEN ${weight} ELSE 0 END`);
  const condition = [holds(bind(stems.map(({ query }) => query).join(" | "))), ...filters].join(" AND ");
  return `SELECT d.session_no, d.seq, d.ts_ms AS at_ms${layout.last("d.tenant")}, (${weights.join(" + ")})::bigint AS rank
  FROM ${scanned(context, parts)} WHERE ${condition}`;
}
