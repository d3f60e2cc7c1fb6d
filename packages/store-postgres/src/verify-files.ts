import type { FilesFacet, Finding } from "@throughline/core";
import { abortedBefore, createFinding } from "@throughline/core/internal";
import { fileChunkBytes, isFileIntact } from "@throughline/store-kit/internal";
import type { DatabaseRow } from "./row-values.ts";
import type { StoreContext } from "./store-context.ts";
import type { VerifyOptions } from "./verify-store.ts";

const rowsAtOnce = 200;

/** Finds files without all of their chunks, and in a full check files whose bytes changed. */
export async function* verifyFiles(
  context: StoreContext,
  files: FilesFacet,
  { full = false, signal }: VerifyOptions,
): AsyncGenerator<Finding> {
  const { place: path } = context.pool;
  for (let after = ""; ;) {
    if (signal?.aborted === true) throw abortedBefore("all files were verified", signal);
    const rows = await filesAfter(context, after, signal);
    for (const row of rows) {
      const isWhole = Number(row["chunks"]) === Math.ceil(Number(row["bytes"]) / fileChunkBytes);
      const scope = { namespace: String(row["namespace"]), agentId: String(row["agent_id"]) };
      if (isWhole && (!full || (await isFileIntact(files, scope, String(row["file_id"]), signal)))) continue;
      yield createFinding("STORE_DAMAGED", `${path} is damaged: the file ${row["file_id"]} cannot be read.`, { path });
    }
    const last = rows.at(-1);
    if (last === undefined) return;
    after = String(last["upload"]);
  }
}

/** An upload has one id in all tenants, so the walk needs no other position. */
function filesAfter(
  { pool, schema, found: { layout } }: StoreContext,
  after: string,
  signal: AbortSignal | undefined,
): Promise<readonly DatabaseRow[]> {
  return pool.run(
    `SELECT f.upload, f.namespace, f.agent_id, f.file_id, f.bytes, (SELECT count(*) FROM ${schema}.file_chunks c
       WHERE c.upload = f.upload${layout.and("c", "f.tenant")}) AS chunks
     FROM ${schema}.files f WHERE f.file_id IS NOT NULL AND f.upload > $1 ORDER BY f.upload LIMIT ${rowsAtOnce}`,
    [after],
    { signal, isRead: true },
  );
}
