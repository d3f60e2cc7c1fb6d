import type { SessionRef } from "@throughline/core";
import { type KeptPut, type KeptVector, vectorMark } from "@throughline/store-kit/internal";
import { addressOf } from "./append-records.ts";
import { arrayLiteral } from "./array-literal.ts";
import type { RunStatement } from "./connection-pool.ts";
import type { DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/**
 * Replaces the vectors of a range in one transaction. The session row stays locked until the commit, so that a redaction
 * waits and deletes what was put, or came first and has changed the mark.
 */
export function putVectors(context: StoreContext, ref: SessionRef, put: KeptPut): Promise<boolean> {
  const address = addressOf(ref);
  if (address === null) return Promise.resolve(false);
  const { layout } = context.found;
  const tenant = layout.values(ref);
  return context.pool.transaction(async (run) => {
    const [row] = await run(
      `SELECT s.session_no, s.session_id, s.last_seq, s.vector_removals FROM ${context.schema}.sessions s
       WHERE s.namespace = $1 AND s.agent_id = $2 AND s.key = $3 AND s.archive_id = $4${layout.and("s", "$5")} FOR SHARE`,
      [...address, ...tenant],
    );
    if (row === undefined || put.toSeq > Number(row["last_seq"])) return false;
    if (put.mark !== vectorMark(String(row["session_no"]), Number(row["vector_removals"]))) return false;
    const owners = await ownersOf(context, run, row, tenant);
    await replaceVectors(context, run, { ref, put, owners, tenant });
    await cover(context, run, { put, owners, tenant });
    return true;
  }, ref);
}

/** States who owns the vectors that a session puts. */
interface Owners {
  readonly sessionNo: string;
  readonly sessionId: string;
  /** Lists shared records whose session was purged, in the order of their seqs. Their vectors keep the number of that session. */
  readonly purged: readonly { readonly no: string; readonly id: string; readonly toSeq: number }[];
  /** States the last record that a session that still exists has to give vectors. */
  readonly sharedSeq: number;
}

async function ownersOf(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  { session_no: sessionNo, session_id: sessionId }: DatabaseRow,
  tenant: readonly string[],
): Promise<Owners> {
  const bases = await run(
    `SELECT b.no, b.id, b.to_seq, EXISTS (SELECT FROM ${schema}.sessions o WHERE o.session_no = b.no${layout.and("o", "$2")}) AS is_there
     FROM ${schema}.sessions s CROSS JOIN LATERAL unnest(s.base_nos, s.base_to_seqs, s.base_ids) AS b (no, to_seq, id)
     WHERE s.session_no = $1${layout.and("s", "$2")} ORDER BY b.to_seq`,
    [sessionNo, ...tenant],
  );
  const ends = bases.map((row) => ({
    no: String(row["no"]),
    id: String(row["id"]),
    toSeq: Number(row["to_seq"]),
    isThere: row["is_there"],
  }));
  const sharedSeq = ends.findLast(({ isThere }) => isThere === true)?.toSeq ?? 0;
  const own = { sessionNo: String(sessionNo), sessionId: String(sessionId) };
  return { ...own, purged: ends.filter(({ toSeq }) => toSeq > sharedSeq), sharedSeq };
}

interface Owner {
  readonly no: string;
  readonly id: string;
}

function ownerOf({ sessionNo: no, sessionId: id, purged, sharedSeq }: Owners, { lastSeq }: KeptVector): Owner {
  if (lastSeq <= sharedSeq) return { no, id };
  return purged.find(({ toSeq }) => lastSeq <= toSeq) ?? { no, id };
}

interface OwnedPut {
  readonly ref: SessionRef;
  readonly put: KeptPut;
  readonly owners: Owners;
  readonly tenant: readonly string[];
}

async function replaceVectors(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  { ref, put, owners, tenant }: OwnedPut,
): Promise<void> {
  const { model, fromSeq, toSeq } = put;
  const vectors = put.vectors.map((vector) => {
    const owner = ownerOf(owners, vector);
    return { ...put.seal(vector, owner.id), ownerNo: owner.no };
  });
  const [set] = await run(
    `INSERT INTO ${schema}.vector_sets AS v (namespace, agent_id, model, last_number${layout.last("tenant")})
     VALUES ($1, $2, $3, $4${layout.last("$5")})
     ON CONFLICT (namespace, agent_id, model${layout.last("tenant")}) DO UPDATE SET last_number = v.last_number + excluded.last_number
     RETURNING last_number`,
    [ref.namespace, ref.agentId, model, vectors.length, ...tenant],
  );
  const first = Number(set?.["last_number"]) - vectors.length + 1;
  await run(
    `DELETE FROM ${schema}.vectors v USING unnest($1::bigint[], $2::bigint[]) AS o (no, to_seq)
     WHERE v.session_no = o.no AND v.last_seq <= o.to_seq AND v.model = $3 AND v.last_seq >= $4 AND v.first_seq <= $5${layout.and("v", "$6")}`,
    [
      [owners.sessionNo, ...owners.purged.map(({ no }) => no)],
      [Number.MAX_SAFE_INTEGER, ...owners.purged.map(({ toSeq: end }) => end)],
      model,
      fromSeq,
      toSeq,
      ...tenant,
    ],
  );
  if (vectors.length === 0) return;
  const column = (of: (vector: (typeof vectors)[number]) => unknown): string => arrayLiteral(vectors.map(of));
  // With a row of the tenant beside them Citus inserts the vectors where it is. It would copy them there otherwise, and
  // row security allows no copy.
  await run(
    `INSERT INTO ${schema}.vectors (${layout.first("tenant")}namespace, agent_id, model, number, session_no, first_seq, last_seq, part, scale, code, numbers)
     SELECT ${layout.first("s.tenant")}s.namespace, s.agent_id, s.model, $4::bigint + v.place - 1, v.no, v.first_seq, v.last_seq, v.part, v.scale, v.code, v.numbers
     FROM unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::integer[], $9::double precision[], $10::bytea[], $11::bytea[])
       WITH ORDINALITY AS v (no, first_seq, last_seq, part, scale, code, numbers, place)
     JOIN ${schema}.vector_sets s ON s.namespace = $1 AND s.agent_id = $2 AND s.model = $3${layout.and("s", "$12")}`,
    [
      ref.namespace,
      ref.agentId,
      model,
      first,
      column(({ ownerNo }) => ownerNo),
      column(({ firstSeq }) => firstSeq),
      column(({ lastSeq }) => lastSeq),
      column(({ part }) => part),
      column(({ scale }) => scale),
      column(({ code }) => code),
      column(({ values }) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength)),
      ...tenant,
    ],
  );
}

async function cover(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  { put: { model, fromSeq, toSeq, resumeSeq }, owners: { sessionNo, sharedSeq }, tenant }: Omit<OwnedPut, "ref">,
): Promise<void> {
  await run(
    `DELETE FROM ${schema}.vector_gaps WHERE session_no = $1 AND model = $2 AND from_seq >= $3 AND to_seq <= $4${layout.and("", "$5")}`,
    [sessionNo, model, fromSeq, toSeq, ...tenant],
  );
  const [progress] = await run(
    `SELECT covered_seq FROM ${schema}.vector_progress WHERE session_no = $1 AND model = $2${layout.and("", "$3")} FOR UPDATE`,
    [sessionNo, model, ...tenant],
  );
  const coveredSeq = Number(progress?.["covered_seq"] ?? sharedSeq);
  if (fromSeq > coveredSeq + 1 || toSeq <= coveredSeq) return;
  await run(
    `INSERT INTO ${schema}.vector_progress (session_no, model, covered_seq, resume_seq${layout.last("tenant")})
     VALUES ($1, $2, $3, $4${layout.last("$5")}) ON CONFLICT (session_no, model${layout.last("tenant")})
     DO UPDATE SET covered_seq = excluded.covered_seq, resume_seq = excluded.resume_seq`,
    [sessionNo, model, toSeq, resumeSeq, ...tenant],
  );
}
