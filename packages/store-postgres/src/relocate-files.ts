import type { FileScope } from "@throughline/core/internal";
import { type CopiedNumber, placeOf, placeOfAgent, type RowPlace } from "./copy-rows.ts";
import { deleteUnused, idsOf, referenceColumns } from "./file-references.ts";
import type { DatabaseRow } from "./row-values.ts";
import { databaseNowMs } from "./store-clock.ts";
import type { StoreContext } from "./store-context.ts";

interface Side {
  readonly no: string;
  readonly tenant: readonly string[];
}

function referencesOf({ run, schema, layout }: RowPlace, { no, tenant }: Side): Promise<readonly DatabaseRow[]> {
  return run(`SELECT ${referenceColumns} FROM ${schema}.file_references WHERE session_no = $1${layout.and("", "$2")}`, [
    no,
    ...tenant,
  ]);
}

function columnOf(rows: readonly DatabaseRow[], name: string): readonly unknown[] {
  return rows.map((row) => row[name]);
}

/**
 * Copies the references of a session number, and the files that the target lacks. The references go first. A file
 * without one would outlive a session that the source purges meanwhile.
 */
export async function copyFilesOf(
  source: RowPlace,
  target: RowPlace,
  number: CopiedNumber,
  check: () => void,
): Promise<void> {
  const wanted = await referencesOf(source, { no: number.from, tenant: number.fromTenant });
  if (wanted.length === 0) return;
  const { schema, layout } = target;
  await target.run(
    `INSERT INTO ${schema}.file_references (${layout.first("tenant")}session_no, ${referenceColumns})
     SELECT ${layout.first("$7::bigint")}$1::bigint, u.* FROM unnest($2::bigint[], $3::integer[], $4::text[], $5::text[], $6::text[]) AS u
     ON CONFLICT DO NOTHING`,
    [number.to, ...referenceColumns.split(", ").map((name) => columnOf(wanted, name)), ...number.toTenant],
  );
  const scope = scopeOf(wanted[0]);
  for (const id of idsOf(wanted)) await copyFile(source, target, { scope, id }, check);
}

/** Removes references that an earlier copy brought to the target, and that a redaction of the source removed since. */
export async function dropRedactedReferences(source: RowPlace, target: RowPlace, number: CopiedNumber): Promise<void> {
  const there = await referencesOf(target, { no: number.to, tenant: number.toTenant });
  if (there.length === 0) return;
  const nameOf = (row: DatabaseRow): string => JSON.stringify([row["seq"], row["place"]]);
  const kept = new Set((await referencesOf(source, { no: number.from, tenant: number.fromTenant })).map(nameOf));
  const redacted = there.filter((row) => !kept.has(nameOf(row)));
  if (redacted.length === 0) return;
  await target.run(
    `DELETE FROM ${target.schema}.file_references r USING unnest($2::bigint[], $3::integer[]) AS u (seq, place)
     WHERE r.session_no = $1 AND r.seq = u.seq AND r.place = u.place${target.layout.and("r", "$4")}`,
    [number.to, columnOf(redacted, "seq"), columnOf(redacted, "place"), ...number.toTenant],
  );
  await deleteUnused(target, scopeOf(redacted[0]), idsOf(redacted));
}

function scopeOf(row: DatabaseRow | undefined): FileScope {
  return { namespace: String(row?.["namespace"]), agentId: String(row?.["agent_id"]) };
}

/** Copies a file, unless the source lacks it or the target has it. A repeated copy continues with its chunks. */
async function copyFile(
  source: RowPlace,
  target: RowPlace,
  { scope, id }: { readonly scope: FileScope; readonly id: string },
  check: () => void,
): Promise<void> {
  const find = async ({ run, schema, layout }: RowPlace) =>
    run(
      `SELECT upload, bytes, stored_at_ms FROM ${schema}.files
       WHERE namespace = $1 AND agent_id = $2 AND lower(file_id) = $3${layout.and("", "$4")}`,
      [scope.namespace, scope.agentId, id, ...layout.values(scope)],
    );
  const [file] = await find(source);
  if (file === undefined || (await find(target)).length > 0) return;
  const { run, schema, layout } = target;
  const { upload } = file;
  const tenant = layout.values(scope);
  // With the present time, because an upload of an earlier day is taken for that of a killed process.
  await run(
    `INSERT INTO ${schema}.files (upload, namespace, agent_id, stored_at_ms${layout.last("tenant")})
     VALUES ($1, $2, $3, $4${layout.last("$5")}) ON CONFLICT DO NOTHING`,
    [upload, scope.namespace, scope.agentId, await databaseNowMs(target, run), ...tenant],
  );
  for (let number = 0; ; number++) {
    check();
    const [chunk] = await source.run(
      `SELECT content FROM ${source.schema}.file_chunks WHERE upload = $1 AND number = $2${source.layout.and("", "$3")}`,
      [upload, number, ...source.layout.values(scope)],
    );
    if (chunk === undefined) break;
    await run(
      `INSERT INTO ${schema}.file_chunks (upload, number, content${layout.last("tenant")})
       VALUES ($1, $2, $3${layout.last("$4")}) ON CONFLICT DO NOTHING`,
      [upload, number, chunk["content"], ...tenant],
    );
  }
  await run(
    `UPDATE ${schema}.files SET file_id = $2, bytes = $3, stored_at_ms = $4 WHERE upload = $1${layout.and("", "$5")}`,
    [upload, id, file["bytes"], file["stored_at_ms"], ...tenant],
  );
}

/** Copies the files to which no record of the source refers yet. */
export async function copyUnusedFiles(
  { from, to, check }: { readonly from: StoreContext; readonly to: StoreContext; readonly check: () => void },
  namespace: string | undefined,
): Promise<void> {
  const { schema, pool, found } = from;
  for (let after = ""; ;) {
    const rows = await pool.run(
      `SELECT f.upload, f.namespace, f.agent_id, f.file_id FROM ${schema}.files f
       WHERE f.file_id IS NOT NULL AND ($1::text IS NULL OR f.namespace = $1) AND f.upload > $2 AND NOT EXISTS (
         SELECT FROM ${schema}.file_references r WHERE r.namespace = f.namespace AND r.agent_id = f.agent_id
           AND lower(r.file_id) = f.file_id${found.layout.and("r", "f.tenant")})
       ORDER BY f.upload LIMIT 500`,
      [namespace ?? null, after],
      { isRead: true },
    );
    for (const row of rows) {
      const scope = scopeOf(row);
      const [source, target] = [placeOfAgent(from, scope), placeOfAgent(to, scope)];
      await copyFile(source, target, { scope, id: String(row["file_id"]) }, check);
    }
    const last = rows.at(-1);
    if (last === undefined) return;
    after = String(last["upload"]);
  }
}

/** Removes the references of copied numbers of one tenant, and the files that nothing else at the target refers to. */
export async function dropCopiedReferences(
  to: StoreContext,
  numbers: readonly unknown[],
  tenant: readonly unknown[],
): Promise<void> {
  await to.pool.transaction(async (run) => {
    const dropped = await run(
      `DELETE FROM ${to.schema}.file_references WHERE session_no = ANY ($1::bigint[])${to.found.layout.and("", "$2")}
       RETURNING namespace, agent_id, file_id`,
      [numbers, ...tenant],
    );
    const scopes = Map.groupBy(dropped, (row) => JSON.stringify([row["namespace"], row["agent_id"]]));
    for (const rows of scopes.values()) await deleteUnused(placeOf(to, run), scopeOf(rows[0]), idsOf(rows));
  });
}
