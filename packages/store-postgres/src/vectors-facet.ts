import type { PayloadCodec, VectorsFacet } from "@throughline/core";
import type { VectorScope } from "@throughline/core/internal";
import {
  createVectorsFacet,
  type HandleLife,
  type NumberedCode,
  type NumberedVector,
  type SessionNumber,
  type ShownSession,
  type VectorBackend,
} from "@throughline/store-kit/internal";
import { refOf, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";
import { pendingVectors } from "./pending-vectors.ts";
import { putVectors } from "./put-vectors.ts";

/** Rows that one transaction deletes. */
const sliceVectors = 5000;

interface VectorParts {
  readonly life: HandleLife;
  readonly codec: PayloadCodec | undefined;
  /** Opens the schema, if it is not open. */
  readonly ready: () => Promise<void>;
}

/** Keeps vectors in tables beside the records. */
export function createVectors(context: StoreContext, { life, codec, ready }: VectorParts): VectorsFacet {
  const onceReady =
    <Given extends readonly unknown[], Result>(work: (context: StoreContext, ...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      await ready();
      return work(context, ...given);
    };
  const backend: VectorBackend = {
    put: onceReady(putVectors),
    forget: onceReady(forgetVectors),
    pending: onceReady(pendingVectors),
    shown: onceReady(shownSessions),
    codes: onceReady(readCodes),
    sessionIds: onceReady(readSessionIds),
    vectors: onceReady(readVectors),
  };
  return createVectorsFacet(backend, life, codec);
}

type ShownQuery = Parameters<VectorBackend["shown"]>[0];

/** A fork shows the vectors of the records that it shares, up to the record at which it began. */
async function shownSessions(
  { pool, schema, found: { layout } }: StoreContext,
  query: ShownQuery,
): Promise<readonly ShownSession[]> {
  const { namespace, agentId, key, state = "any" } = query;
  const rows = await pool.run(
    `SELECT s.namespace, s.agent_id, s.key, s.archive_id, s.session_id, o.no, o.to_seq FROM ${schema}.sessions s
     CROSS JOIN LATERAL unnest(s.base_nos || s.session_no, s.base_to_seqs || s.last_seq) AS o (no, to_seq)
     WHERE s.namespace = $1 AND s.agent_id = $2 AND ($3::text IS NULL OR s.key = $3)
       AND ($4::boolean IS NULL OR s.archived = $4)${layout.and("s", "$5")} ORDER BY s.session_no`,
    [namespace, agentId, key ?? null, state === "any" ? null : state === "archived", ...layout.values(query)],
    { isRead: true, agent: query },
  );
  return rows.map((row) => ({
    owner: String(row["no"]),
    toSeq: Number(row["to_seq"]),
    ref: refOf(row),
    sessionId: String(row["session_id"]),
  }));
}

/** The first three parameters name a set, and the one given its tenant. */
function isInSet({ found: { layout } }: StoreContext, tenant: string): string {
  return `v.namespace = $1 AND v.agent_id = $2 AND v.model = $3${layout.and("v", tenant)}`;
}

async function readCodes(
  context: StoreContext,
  scope: VectorScope,
  model: string,
  after: number,
  limit: number,
): Promise<readonly NumberedCode[]> {
  const { pool, schema, found } = context;
  const rows = await pool.run(
    `SELECT v.number, v.session_no, v.code FROM ${schema}.vectors v
     WHERE ${isInSet(context, "$6")} AND v.number > $4 ORDER BY v.number LIMIT $5`,
    [scope.namespace, scope.agentId, model, after, limit, ...found.layout.values(scope)],
    { isRead: true, agent: scope },
  );
  return rows.map((row) => ({
    number: Number(row["number"]),
    owner: String(row["session_no"]),
    code: row["code"] as Uint8Array,
  }));
}

/** A purged session has no row. Its forks know the id that its records, and so their vectors, are bound to. */
async function readSessionIds(
  { pool, schema, found: { layout } }: StoreContext,
  scope: VectorScope,
  owners: readonly SessionNumber[],
): Promise<ReadonlyMap<SessionNumber, string>> {
  const tenant = layout.values(scope);
  const rows = await pool.run(
    `SELECT s.session_no AS no, s.session_id AS id FROM ${schema}.sessions s WHERE s.session_no = ANY ($1::bigint[])${layout.and("s", "$2")}
     UNION ALL
     SELECT b.no, b.id FROM ${schema}.sessions s CROSS JOIN LATERAL unnest(s.base_nos, s.base_ids) AS b (no, id)
     WHERE s.base_nos OPERATOR(pg_catalog.&&) $1::bigint[] AND b.no = ANY ($1::bigint[])${layout.and("s", "$2")}`,
    [owners, ...tenant],
    { isRead: true, agent: scope },
  );
  return new Map(rows.map((row) => [String(row["no"]), String(row["id"])]));
}

async function readVectors(
  context: StoreContext,
  scope: VectorScope,
  model: string,
  numbers: readonly number[],
): Promise<readonly NumberedVector[]> {
  const { pool, schema, found } = context;
  const rows = await pool.run(
    `SELECT v.number, v.session_no, v.first_seq, v.last_seq, v.part, v.scale, v.numbers FROM ${schema}.vectors v
     WHERE ${isInSet(context, "$5")} AND v.number = ANY ($4::bigint[])`,
    [scope.namespace, scope.agentId, model, numbers, ...found.layout.values(scope)],
    { isRead: true, agent: scope },
  );
  return rows.map(numberedVector);
}

function numberedVector(row: DatabaseRow): NumberedVector {
  const bytes = row["numbers"] as Uint8Array;
  return {
    number: Number(row["number"]),
    owner: String(row["session_no"]),
    firstSeq: Number(row["first_seq"]),
    lastSeq: Number(row["last_seq"]),
    part: Number(row["part"]),
    scale: Number(row["scale"]),
    values: new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  };
}

/** The progress goes first, so that no reader takes a set for complete whose vectors are going. */
async function forgetVectors(context: StoreContext, scope: VectorScope, keep: string | null): Promise<number> {
  const { pool, schema, found } = context;
  const { layout } = found;
  const values = [scope.namespace, scope.agentId, keep, ...layout.values(scope)];
  await pool.transaction(async (run) => {
    for (const table of ["vector_progress", "vector_gaps"])
      await run(
        `DELETE FROM ${schema}.${table} p USING ${schema}.sessions s WHERE p.session_no = s.session_no${layout.and("p", "s.tenant")}
           AND s.namespace = $1 AND s.agent_id = $2 AND p.model IS DISTINCT FROM $3${layout.and("s", "$4")}`,
        values,
      );
  }, scope);
  for (let count = 0; ;) {
    const deleted = await pool.run(
      `DELETE FROM ${schema}.vectors v WHERE v.namespace = $1 AND v.agent_id = $2${layout.and("v", "$4")}
         AND (v.model, v.number) IN (SELECT w.model, w.number FROM ${schema}.vectors w
           WHERE w.namespace = $1 AND w.agent_id = $2 AND w.model IS DISTINCT FROM $3${layout.and("w", "$4")} LIMIT ${sliceVectors})
       RETURNING 1`,
      values,
      { agent: scope },
    );
    count += deleted.length;
    if (deleted.length < sliceVectors) return count;
  }
}
