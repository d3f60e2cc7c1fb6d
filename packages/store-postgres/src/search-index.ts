import type { SearchFacet, SearchQuery, SessionRecord } from "@throughline/core";
import { assertStoreOptions, readSearchQuery, type SearchToken, searchText } from "@throughline/core/internal";
import { arrayLiteral } from "./array-literal.ts";
import type { RunStatement } from "./connection-pool.ts";
import { agentOf, type TenantAgent, tenantsOf } from "./layout.ts";
import { noteErasedWords } from "./erased-words.ts";
import { checkedSource } from "./search-candidates.ts";
import { refOf, wholeRecordOf, type DatabaseRow } from "./row-values.ts";
import { searchHits } from "./search-query.ts";
import { searchVector } from "./search-vector.ts";
import type { StoreContext } from "./store-context.ts";

/** These limits bound one transaction: records to index, and sessions to look up. */
const sliceRecords = 500;
const sliceSessions = 200;

/**
 * A search looks again at sessions that appended in the last five minutes, because a running statement may commit late.
 */
const openSlots = 5;

/**
 * Creates the full-text search. Indexing is not part of a turn: a search first indexes the new records, session by
 * session. The minute of the last append shows which sessions have new records.
 */
export function createSearch(context: StoreContext, begin: (signal?: AbortSignal) => Promise<void>): SearchFacet {
  return {
    async *search(query: SearchQuery) {
      const scope = readSearchQuery(query);
      await begin(query.signal);
      const { signal } = query;
      const check = (): Promise<void> => begin(signal);
      const { isLimited } = await catchUp(context, check, { signal, agent: agentOf(query) });
      yield* searchHits(context, query, { scope, isLimited, check });
    },
    async lag() {
      await begin();
      const [row] = await context.pool.run(
        `SELECT coalesce(sum(b.last_seq - b.indexed_seq), 0) AS records FROM (${behind(context)}) b`,
        [],
        { isRead: true },
      );
      return Number(row?.["records"] ?? 0);
    },
    async rebuild(options = {}) {
      assertStoreOptions("rebuild", options);
      const { signal } = options;
      await begin(signal);
      await context.pool.transaction((run) => emptyIndex(context, run));
      await catchUp(context, () => begin(signal), { signal, agent: undefined });
    },
  };
}

async function emptyIndex({ schema }: StoreContext, run: RunStatement): Promise<void> {
  await run(`DELETE FROM ${schema}.search_documents`);
  await run(`DELETE FROM ${schema}.search_positions`);
  await run(`UPDATE ${schema}.search_state SET caught_up_slot = 0`);
}

/** Empties an index from a time when the codec gave tokens. A role that is limited by row security empties its part. */
export async function dropUnwantedIndex(context: StoreContext): Promise<void> {
  const { schema, pool } = context;
  // Citus plans no statement that has subqueries alone.
  const isEmpty = async (table: string): Promise<boolean> =>
    (await pool.run(`SELECT 1 FROM ${schema}.${table} LIMIT 1`, [], { isRead: true })).length === 0;
  if ((await isEmpty("search_documents")) && (await isEmpty("search_positions"))) return;
  await pool.transaction(async (run) => {
    await emptyIndex(context, run);
    await noteErasedWords(context, run);
  });
}

/**
 * Finds sessions with records that are not indexed. Shared records are indexed with the session that wrote them.
 *
 * The position is looked up row by row. A join would read all positions for a few sessions, because the planner expects
 * a third of all sessions to be newer than the slot. The look-up is a column, because Citus plans no LATERAL query that
 * has no table of its own. Citus asks one node only if each table names the tenant.
 *
 * @param tenant of the session `s`, bound if it is the only one
 * @param more a condition on the session, with its AND
 */
function behind({ schema, found: { layout } }: StoreContext, tenant = "s.tenant", more = ""): string {
  return `SELECT b.* FROM (
      SELECT s.session_no, s.session_id, s.namespace, s.agent_id, s.key, s.archive_id, s.last_seq, s.appended_slot, coalesce(
        (SELECT q.indexed_seq FROM ${schema}.search_positions q WHERE q.session_no = s.session_no${layout.and("q", tenant)}),
        s.base_to_seqs[pg_catalog.cardinality(s.base_to_seqs)], 0) AS indexed_seq
      FROM ${schema}.sessions s WHERE s.appended_slot >= (SELECT caught_up_slot FROM ${schema}.search_state)${more}
    ) b WHERE b.last_seq > b.indexed_seq`;
}

interface CatchUpOptions {
  readonly signal: AbortSignal | undefined;
  /** Owns the records. It is not set for the records of all agents. */
  readonly agent: TenantAgent | undefined;
}

/**
 * Indexes missing records. A replica is skipped, because it cannot write and has the primary's index. The minute up to
 * which everything is indexed is stored once for all sessions. Only a role that sees all sessions advances it, because
 * row security hides sessions from others. A search of one tenant leaves the minute to a search of all. Returns
 * whether row security limits the role.
 */
async function catchUp(
  context: StoreContext,
  check: () => Promise<void>,
  { signal, agent }: CatchUpOptions,
): Promise<{ readonly isLimited: boolean }> {
  const { schema, pool } = context;
  const { layout } = context.found;
  const tenant = tenantsOf(layout, agent);
  const missing = tenant.length === 0 ? behind(context) : behind(context, "$2::bigint", layout.and("s", "$2::bigint"));
  const sql = `SELECT n.*, b.* FROM (
      SELECT ${schema}.store_now_ms() / 60000 - ${openSlots} AS slot, caught_up_slot, row_security_active($1) AS is_limited,
        current_setting('transaction_read_only') = 'on' AS is_replica
      FROM ${schema}.search_state
    ) n LEFT JOIN (${missing} ORDER BY b.appended_slot LIMIT ${sliceSessions}) b ON true`;
  let first: DatabaseRow | undefined;
  for (;;) {
    const rows = await pool.run(sql, [`${schema}.sessions`, ...tenant], { signal, isRead: true, agent });
    first ??= rows[0];
    if (first?.["is_replica"] === true) break;
    const sessions = rows.filter(({ session_no: number }) => number !== null);
    if (sessions.length === 0) break;
    for (const session of sessions) await indexSession(context, session, check);
  }
  const isLimited = first?.["is_limited"] !== false;
  if (first?.["is_replica"] === true) return { isLimited };
  // A slot of 0 means that the index was rebuilt, or that the records come from a backup or another schema.
  if (Number(first?.["caught_up_slot"]) === 0) await indexInherited(context, check, { signal, agent });
  const slot = Number(first?.["slot"]);
  if (tenant.length === 0 && !isLimited && slot > Number(first?.["caught_up_slot"]))
    await pool.run(`UPDATE ${schema}.search_state SET caught_up_slot = $1::bigint WHERE caught_up_slot < $1::bigint`, [
      slot,
    ]);
  return { isLimited };
}

/**
 * Indexes records that forks share with purged sessions, because the purge removed the session that would lead to them.
 * Their number has no session row, so a fork's row is locked instead, and no position is stored.
 */
async function indexInherited(
  context: StoreContext,
  check: () => Promise<void>,
  { signal, agent }: CatchUpOptions,
): Promise<void> {
  const { schema, pool, found } = context;
  const { layout } = found;
  const tenant = tenantsOf(layout, agent);
  const [ofTenant, named] = tenant.length === 0 ? ["", "s.tenant"] : [layout.and("s", "$1::bigint"), "$1::bigint"];
  const rows = await pool.run(
    `SELECT b.no AS session_no, max(b.to_seq) AS last_seq, 0 AS indexed_seq, min(s.session_no) AS locked_no, s.namespace, s.agent_id,
       min(s.key) AS key, '' AS archive_id, min(b.id) AS session_id
     FROM ${schema}.sessions s CROSS JOIN LATERAL unnest(s.base_nos, s.base_to_seqs, s.base_ids) AS b (no, to_seq, id)
     WHERE s.base_nos IS NOT NULL${ofTenant}
       AND NOT EXISTS (SELECT FROM ${schema}.sessions o WHERE o.session_no = b.no${layout.and("o", named)})
     GROUP BY b.no, s.namespace, s.agent_id`,
    tenant,
    { signal, isRead: true, agent },
  );
  for (const row of rows) await indexSession(context, row, check);
}

/** Indexes the records of the session behind its `indexed_seq`. */
export async function indexSession(
  context: StoreContext,
  session: DatabaseRow,
  check: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  for (let indexed = Number(session["indexed_seq"]); indexed < Number(session["last_seq"]);) {
    await check();
    indexed = await indexSlice(context, session, indexed);
  }
}

/** Returns the seq up to which the session is indexed now. */
async function indexSlice(context: StoreContext, session: DatabaseRow, afterSeq: number): Promise<number> {
  const { schema } = context;
  const { layout } = context.found;
  const sessionNo = session["session_no"];
  const ref = refOf(session);
  const tenant = layout.values(ref);
  const rows = await context.pool.run(
    `SELECT r.seq, r.id, r.parent_id, r.type, r.side, r.ts_ms, r.stored_at_ms, r.bytes, r.crc, r.form, r.rest, r.coded,
       NULL AS base_id, $1::text AS session_id, (SELECT b.content FROM ${schema}.payloads b
         WHERE b.session_no = r.session_no AND b.hash = r.rest_hash${layout.and("b", "$4")}) AS rest_payload${checkedSource(context, layout, "$4")}
     FROM ${schema}.records r WHERE r.session_no = $2 AND r.seq > $3${layout.and("r", "$4")} ORDER BY r.seq LIMIT ${sliceRecords}`,
    [session["session_id"], sessionNo, afterSeq, ...tenant],
    { isRead: true, agent: ref },
  );
  const toSeq = Number(rows.at(-1)?.["seq"] ?? session["last_seq"]);
  const token = context.tokenOf(ref.namespace, "index");
  const documents = rows.flatMap((row) => documentOf(wholeRecordOf(context.rows, ref, row)?.record, row, token));
  await context.pool.transaction(async (run) => {
    // The lock orders this transaction against a redaction or purge. An earlier one is visible here, and a later one
    // removes the documents that this one writes.
    const [locked] = await run(
      `SELECT FROM ${schema}.sessions WHERE session_no = $1${layout.and("", "$2")} FOR SHARE`,
      [session["locked_no"] ?? sessionNo, ...tenant],
    );
    if (locked === undefined) return;
    if (documents.length > 0) await insertDocuments(context, run, { sessionNo, documents, tenant });
    if (session["locked_no"] !== undefined) return;
    await run(
      `INSERT INTO ${schema}.search_positions AS p (session_no, indexed_seq${layout.last("tenant")}) VALUES ($1, $2${layout.last("$3")})
       ON CONFLICT (session_no${layout.last("tenant")}) DO UPDATE SET indexed_seq = greatest(p.indexed_seq, excluded.indexed_seq)`,
      [sessionNo, toSeq, ...tenant],
    );
  }, ref);
  return toSeq;
}

interface SearchDocument {
  readonly seq: unknown;
  readonly crc: unknown;
  readonly role: string | null;
  readonly words: string;
}

/** Writes documents of records that still have the checksum that was read. */
export async function insertDocuments(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  {
    sessionNo,
    documents,
    tenant,
  }: {
    readonly sessionNo: unknown;
    readonly documents: readonly SearchDocument[];
    readonly tenant: readonly unknown[];
  },
): Promise<void> {
  await run(
    `INSERT INTO ${schema}.search_documents (${layout.first("tenant")}session_no, seq, ts_ms, role, words)
     SELECT ${layout.first("r.tenant")}r.session_no, r.seq, coalesce(r.ts_ms, r.stored_at_ms), d.role, d.words::tsvector
     FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[]) AS d (seq, crc, role, words)
     JOIN ${schema}.records r ON r.session_no = $1 AND r.seq = d.seq AND r.crc = d.crc${layout.and("r", "$6")}
     ON CONFLICT DO NOTHING`,
    [
      sessionNo,
      documents.map(({ seq }) => seq),
      documents.map(({ crc }) => crc),
      arrayLiteral(documents.map(({ role }) => role)),
      arrayLiteral(documents.map(({ words }) => words)),
      ...tenant,
    ],
  );
}

/** Returns no document for a record without text or for a damaged one, so that a damaged record hides no other. */
export function documentOf(
  record: SessionRecord | undefined,
  { seq, crc }: DatabaseRow,
  token: SearchToken | null,
): SearchDocument[] {
  const found = record === undefined ? null : searchText(record);
  if (found === null) return [];
  const role = token !== null || found.role?.includes("\0") === true ? null : found.role;
  return [{ seq, crc, role, words: searchVector(found, token) }];
}
