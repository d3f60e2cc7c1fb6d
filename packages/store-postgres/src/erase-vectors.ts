import type { RunStatement } from "./connection-pool.ts";
import type { DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** States the sessions that show some records. */
export interface ReachedSessions {
  /** An array of their numbers, in SQL. */
  readonly numbers: string;
  /** The session, the sessions and numbers of the records, and the tenant, which the array refers to as $1 to $4. */
  readonly values: readonly unknown[];
}

/**
 * Deletes the vectors of records that a redaction replaces, in its transaction. The change of the mark comes first: it waits
 * for a batch that is being put, whose vectors the deletion then sees. The records are pending again in the session that
 * wrote them, and after its purge in each session that shares them.
 */
export async function eraseVectorsOf(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  { numbers: reachedNumbers, values }: ReachedSessions,
): Promise<void> {
  const reached = await run(
    `UPDATE ${schema}.sessions s SET vector_removals = s.vector_removals + 1
     WHERE s.session_no = ANY (${reachedNumbers})${layout.and("s", "$4")} RETURNING s.session_no`,
    values,
  );
  const numbers = reached.map((row) => row["session_no"]);
  const [, places, seqs, ...tenant] = values;
  const deleted = await run(
    `DELETE FROM ${schema}.vectors v WHERE (v.session_no = ANY ($1::bigint[]) OR v.session_no = ANY ($2::bigint[]))${layout.and("v", "$4")}
       AND EXISTS (SELECT FROM unnest($3::bigint[]) AS r (seq) WHERE r.seq BETWEEN v.first_seq AND v.last_seq)
     RETURNING v.session_no, v.model, v.first_seq, v.last_seq`,
    [numbers, places, seqs, ...tenant],
  );
  if (deleted.length > 0) await addGaps({ schema, layout }, run, deleted, { numbers, tenant });
}

async function addGaps(
  { schema, layout }: Pick<StoreContext, "schema"> & Pick<StoreContext["found"], "layout">,
  run: RunStatement,
  deleted: readonly DatabaseRow[],
  { numbers, tenant }: { readonly numbers: readonly unknown[]; readonly tenant: readonly unknown[] },
): Promise<void> {
  const column = (name: string): readonly unknown[] => deleted.map((row) => row[name]);
  await run(
    `INSERT INTO ${schema}.vector_gaps AS g (${layout.first("tenant")}session_no, model, from_seq, to_seq)
     SELECT ${layout.first("s.tenant")}s.session_no, d.model, d.from_seq, max(d.to_seq)
     FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS d (no, model, from_seq, to_seq)
     JOIN ${schema}.sessions s ON s.session_no = ANY ($5::bigint[])${layout.and("s", "$6")}
       AND (s.session_no = d.no OR s.base_nos @> ARRAY[d.no]
         AND NOT EXISTS (SELECT FROM ${schema}.sessions o WHERE o.session_no = d.no${layout.and("o", "$6")}))
     GROUP BY ${layout.first("s.tenant")}s.session_no, d.model, d.from_seq
     ON CONFLICT (session_no, model, from_seq${layout.last("tenant")}) DO UPDATE SET to_seq = greatest(g.to_seq, excluded.to_seq)`,
    [column("session_no"), column("model"), column("first_seq"), column("last_seq"), numbers, ...tenant],
  );
}

/**
 * Before a session is purged, each session that shares records of it and has vectors of a model gets the gaps that it can
 * see, and is to fill them.
 */
export async function passOnGaps(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  { session_no: sessionNo, namespace, agent_id: agentId, last_seq: lastSeq }: DatabaseRow,
  {
    begunAtSeq,
    tenant,
  }: {
    /** States the last record that the session shares with the one that it was forked from. */
    readonly begunAtSeq: number;
    readonly tenant: readonly string[];
  },
): Promise<void> {
  const own = (table: string): string => `FROM ${schema}.${table} WHERE session_no = $1${layout.and("", "$6")}`;
  await run(
    `INSERT INTO ${schema}.vector_gaps AS g (${layout.first("tenant")}session_no, model, from_seq, to_seq)
     SELECT ${layout.first("s.tenant")}s.session_no, u.model, u.from_seq, max(least(u.to_seq, b.to_seq))
     FROM ${schema}.sessions s CROSS JOIN LATERAL unnest(s.base_nos, s.base_to_seqs) AS b (no, to_seq)
     CROSS JOIN (
       SELECT model, from_seq, to_seq ${own("vector_gaps")}
       UNION ALL SELECT model, first_seq, last_seq ${own("vectors")}
         AND last_seq > (SELECT min(c.to_seq) FROM ${schema}.sessions t CROSS JOIN LATERAL unnest(t.base_nos, t.base_to_seqs) AS c (no, to_seq)
           WHERE t.base_nos @> ARRAY[$1::bigint] AND c.no = $1${layout.and("t", "$6")})
       UNION ALL SELECT v.model, coalesce(p.covered_seq, $5::bigint) + 1, $4::bigint
         FROM ${schema}.vector_sets v LEFT JOIN (SELECT model, covered_seq ${own("vector_progress")}) p ON p.model = v.model
         WHERE v.namespace = $2 AND v.agent_id = $3${layout.and("v", "$6")}) u
     WHERE s.base_nos @> ARRAY[$1::bigint] AND b.no = $1 AND u.from_seq <= b.to_seq${layout.and("s", "$6")}
       AND EXISTS (SELECT FROM ${schema}.vector_progress p WHERE p.session_no = s.session_no AND p.model = u.model${layout.and("p", "s.tenant")})
     GROUP BY ${layout.first("s.tenant")}s.session_no, u.model, u.from_seq
     ON CONFLICT (session_no, model, from_seq${layout.last("tenant")}) DO UPDATE SET to_seq = greatest(g.to_seq, excluded.to_seq)`,
    [sessionNo, namespace, agentId, lastSeq, begunAtSeq, ...tenant],
  );
}
