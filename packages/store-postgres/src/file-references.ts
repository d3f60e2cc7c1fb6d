import type { FileScope } from "@throughline/core/internal";
import type { RunStatement } from "./connection-pool.ts";
import { placeOf, type RowPlace } from "./copy-rows.ts";
import { refOf, type DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";

/** Lists the columns of a reference without the session and the tenant. */
export const referenceColumns: string = "seq, place, namespace, agent_id, file_id";

/** A fork shows the records of its origin, so it refers to their files too. */
export async function shareReferences(
  { schema, found: { layout } }: StoreContext,
  run: RunStatement,
  { origin, fork, atSeq }: { readonly origin: DatabaseRow; readonly fork: DatabaseRow; readonly atSeq: number },
): Promise<void> {
  await run(
    `INSERT INTO ${schema}.file_references (${layout.first("tenant")}session_no, ${referenceColumns})
     SELECT ${layout.first("r.tenant")}$1::bigint, ${referenceColumns} FROM ${schema}.file_references r
     WHERE r.session_no = $2 AND r.seq <= $3${layout.and("r", "$4")}`,
    [fork["session_no"], origin["session_no"], atSeq, ...layout.values(refOf(origin))],
  );
}

/** Removes what a session refers to, and every file to which nothing else does. The caller holds the session's row. */
export async function dropReferences(context: StoreContext, run: RunStatement, session: DatabaseRow): Promise<void> {
  const { layout } = context.found;
  const ref = refOf(session);
  const dropped = await run(
    `DELETE FROM ${context.schema}.file_references WHERE session_no = $1${layout.and("", "$2")} RETURNING file_id`,
    [session["session_no"], ...layout.values(ref)],
  );
  await deleteUnused(placeOf(context, run), ref, idsOf(dropped));
}

/** Removes what a record refers to, in every session that shows it, except the ids that its redacted form still names. */
export async function dropReferencesOfRecord(
  context: StoreContext,
  run: RunStatement,
  {
    scope,
    row,
    keptIds,
  }: { readonly scope: FileScope; readonly row: DatabaseRow; readonly keptIds: readonly string[] },
): Promise<void> {
  const { schema } = context;
  const { layout } = context.found;
  const dropped = await run(
    `DELETE FROM ${schema}.file_references r WHERE r.seq = $2 AND r.file_id <> ALL ($3::text[])${layout.and("r", "$4")}
       AND r.session_no IN (SELECT s.session_no FROM ${schema}.sessions s
         WHERE (s.session_no = $1 OR s.base_nos @> ARRAY[$1::bigint] AND EXISTS (
           SELECT FROM unnest(s.base_nos, s.base_to_seqs) AS b (no, to_seq) WHERE b.no = $1 AND b.to_seq >= $2))${layout.and("s", "$4")})
     RETURNING r.file_id`,
    [row["session_no"], row["seq"], keptIds, ...layout.values(scope)],
  );
  await deleteUnused(placeOf(context, run), scope, idsOf(dropped));
}

/** Returns the ids of files in rows, each once. */
export function idsOf(rows: readonly DatabaseRow[]): readonly string[] {
  return [...new Set(rows.map((row) => String(row["file_id"])))];
}

/**
 * Deletes those of the files to which no record refers. An append locks the files that it names before it refers to
 * them. The lock of this statement waits for such an append, and the next statement sees what it committed.
 */
export async function deleteUnused(
  transaction: RowPlace,
  { namespace, agentId }: FileScope,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  const { run, schema, layout } = transaction;
  const tenant = layout.values({ namespace, agentId });
  const isNamed = `f.namespace = $1 AND f.agent_id = $2 AND lower(f.file_id) = ANY ($3::text[])${layout.and("f", "$4")}`;
  const named = [namespace, agentId, ids, ...tenant];
  await run(`SELECT FROM ${schema}.files f WHERE ${isNamed} ORDER BY lower(f.file_id) FOR UPDATE`, named);
  const unused = await run(
    `SELECT f.upload FROM ${schema}.files f WHERE ${isNamed} AND NOT EXISTS (
       SELECT FROM ${schema}.file_references r
       WHERE r.namespace = $1 AND r.agent_id = $2 AND lower(r.file_id) = f.file_id${layout.and("r", "$4")})`,
    named,
  );
  for (const row of unused) await deleteUpload(transaction, String(row["upload"]), tenant);
}

/** Deletes a file or an upload. The row goes last, because row security shows a role the chunks only while it is there. */
export async function deleteUpload(
  { run, schema, layout }: RowPlace,
  upload: string,
  tenant: readonly string[],
): Promise<void> {
  for (const table of ["file_chunks", "files"])
    await run(`DELETE FROM ${schema}.${table} WHERE upload = $1${layout.and("", "$2")}`, [upload, ...tenant]);
}
