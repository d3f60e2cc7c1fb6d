import type { PendingQuery, PendingRange, PendingVectors, VectorScope } from "@throughline/core/internal";
import { vectorMark } from "@throughline/store-kit/internal";
import { refOf, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Returns the last record of session `s` that another session gives vectors. Shared records belong to the session that
 * wrote them, and after its purge to the sessions that share them. Citus plans the look-up only with the bound tenant.
 */
function sharedSeq({ schema, found: { layout } }: StoreContext): string {
  return `coalesce((SELECT max(b.to_seq) FROM unnest(s.base_nos, s.base_to_seqs) AS b (no, to_seq)
      WHERE EXISTS (SELECT FROM ${schema}.sessions o WHERE o.session_no = b.no${layout.and("o", "$4")})), 0)`;
}

/** Lists the records of a scope that have no vectors of a model. */
export async function pendingVectors(
  context: StoreContext,
  scope: VectorScope,
  { model, limit, signal }: PendingQuery & { readonly limit: number },
): Promise<PendingVectors> {
  const { pool, schema, found } = context;
  const { layout } = found;
  const columns =
    "s.namespace, s.agent_id, s.key, s.archive_id, s.session_id, s.session_no, s.vector_removals, s.updated_at_ms";
  const isInScope = `s.namespace = $1 AND s.agent_id = $2${layout.and("s", "$4")}`;
  const values = [scope.namespace, scope.agentId, model, ...layout.values(scope)];
  const ranges = `SELECT ${columns}, g.from_seq, g.to_seq, g.from_seq - 1 AS covered_seq, 0 AS place
      FROM ${schema}.vector_gaps g JOIN ${schema}.sessions s ON s.session_no = g.session_no${layout.and("s", "g.tenant")}
      WHERE g.model = $3 AND ${isInScope}
    UNION ALL SELECT * FROM (
      SELECT ${columns}, coalesce(p.resume_seq, ${sharedSeq(context)} + 1) AS from_seq, s.last_seq AS to_seq,
        coalesce(p.covered_seq, ${sharedSeq(context)}) AS covered_seq, 1 AS place
      FROM ${schema}.sessions s LEFT JOIN ${schema}.vector_progress p
        ON p.session_no = s.session_no AND p.model = $3${layout.and("p", "s.tenant")}
      WHERE ${isInScope}) t WHERE t.to_seq > t.covered_seq`;
  const rows = await pool.run(
    `SELECT r.*, sum(CASE r.place WHEN 0 THEN r.to_seq - r.from_seq + 1 ELSE r.to_seq - r.covered_seq END) OVER () AS records
     FROM (${ranges}) r ORDER BY r.place, r.updated_at_ms DESC, r.session_no, r.from_seq LIMIT ${limit}`,
    values,
    { signal, isRead: true, agent: scope },
  );
  const [other] = await pool.run(
    `SELECT EXISTS (SELECT FROM ${schema}.vectors v
         WHERE v.namespace = $1 AND v.agent_id = $2 AND v.model <> $3${layout.and("v", "$4")})
       OR EXISTS (SELECT FROM ${schema}.vector_progress p JOIN ${schema}.sessions s ON s.session_no = p.session_no${layout.and("s", "p.tenant")}
         WHERE p.model <> $3 AND ${isInScope}) AS is_there`,
    values,
    { signal, isRead: true, agent: scope },
  );
  return {
    ranges: rows.map(rangeOf),
    records: Number(rows[0]?.["records"] ?? 0),
    hasOthers: other?.["is_there"] === true,
  };
}

function rangeOf(row: DatabaseRow): PendingRange {
  return {
    ref: refOf(row),
    sessionId: String(row["session_id"]),
    fromSeq: Number(row["from_seq"]),
    toSeq: Number(row["to_seq"]),
    coveredSeq: Number(row["covered_seq"]),
    mark: vectorMark(String(row["session_no"]), Number(row["vector_removals"])),
  };
}
