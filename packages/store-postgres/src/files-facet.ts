import type { Clock, FilesFacet, RandomSource } from "@throughline/core";
import { type FileScope, type ListedFile, refused } from "@throughline/core/internal";
import {
  createFilesFacet,
  type FileBackend,
  type FileUpload,
  type HandleLife,
  uploadEndsMs,
} from "@throughline/store-kit/internal";
import type { RunStatement } from "./connection-pool.ts";
import { placeOf } from "./copy-rows.ts";
import { deleteUpload } from "./file-references.ts";
import { breaksIndex, nativeCode } from "./postgres-errors.ts";
import type { DatabaseRow } from "./row-values.ts";
import { databaseNowMs } from "./store-clock.ts";
import type { StoreContext } from "./store-context.ts";

/** A publish is repeated after another one of the same bytes won. */
const maxAttempts = 8;

interface FilesOptions {
  readonly life: HandleLife;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Opens the schema, if it is not open. */
  readonly ready: () => Promise<void>;
}

/** Keeps files in rows of chunks, so that no statement is larger than a chunk. */
export function createFiles(context: StoreContext, { life, clock, random, ready }: FilesOptions): FilesFacet {
  const backend = createBackend(context, ready);
  const { coder } = context.rows;
  return createFilesFacet({ backend, coder, life, limits: context.limits, clock, newId: () => random.uuid() });
}

function createBackend(context: StoreContext, ready: () => Promise<void>): FileBackend {
  const onceReady =
    <Given extends readonly unknown[], Result>(work: (context: StoreContext, ...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      await ready();
      return work(context, ...given);
    };
  return {
    addChunk: onceReady(addChunk),
    publish: onceReady(publish),
    drop: onceReady(drop),
    find: onceReady(findFile),
    chunk: onceReady(findChunk),
    remove: onceReady(removeFile),
    list: onceReady(listFiles),
  };
}

async function addChunk(context: StoreContext, upload: FileUpload, number: number, content: Uint8Array): Promise<void> {
  const { pool, schema } = context;
  const { layout } = context.found;
  const run: RunStatement = (sql, values = []) => pool.run(sql, values, { agent: upload.scope });
  if (number === 0) await beginUpload(context, run, upload);
  const added = await run(
    `INSERT INTO ${schema}.file_chunks AS c (${layout.first("tenant")}upload, number, content)
     SELECT ${layout.first("f.tenant")}f.upload, $2::integer, $3::bytea FROM ${schema}.files f
     WHERE f.upload = $1 AND f.file_id IS NULL${layout.and("f", "$4")} RETURNING c.number`,
    [upload.id, number, content, ...layout.values(upload.scope)],
  );
  if (added.length === 0) throw givenUp();
}

async function beginUpload(context: StoreContext, run: RunStatement, { id, scope }: FileUpload): Promise<void> {
  const { layout } = context.found;
  await run(
    `INSERT INTO ${context.schema}.files (upload, namespace, agent_id, stored_at_ms${layout.last("tenant")})
     VALUES ($1, $2, $3, $4${layout.last("$5")})`,
    [id, scope.namespace, scope.agentId, await databaseNowMs(context, run), ...layout.values(scope)],
  );
}

function givenUp(): Error {
  const message = "The upload was given up, because it took longer than a day.";
  return refused("STORE_LOCKED", message, { uploadEndsMs });
}

async function publish(
  context: StoreContext,
  upload: FileUpload,
  file: { readonly id: string; readonly bytes: number },
): Promise<boolean> {
  for (let attempt = 1; ; attempt++)
    try {
      return await context.pool.transaction((run) => publishOnce(context, run, upload, file), upload.scope);
    } catch (error) {
      const { cause } = error as { readonly cause?: unknown };
      // Another upload of the same bytes was published after this one looked for them.
      if (nativeCode(cause) !== "23505" || !breaksIndex(cause, "files_id") || attempt === maxAttempts) throw error;
    }
}

async function publishOnce(
  context: StoreContext,
  run: RunStatement,
  upload: FileUpload,
  { id, bytes }: { readonly id: string; readonly bytes: number },
): Promise<boolean> {
  const { schema } = context;
  const { layout } = context.found;
  const { namespace, agentId } = upload.scope;
  const tenant = layout.values(upload.scope);
  const nowMs = await databaseNowMs(context, run);
  await dropOldUploads(context, run, upload.scope, nowMs - uploadEndsMs);
  const renewed = await run(
    `UPDATE ${schema}.files SET stored_at_ms = $4 WHERE namespace = $1 AND agent_id = $2 AND lower(file_id) = $3${layout.and("", "$5")}
     RETURNING upload`,
    [namespace, agentId, id, nowMs, ...tenant],
  );
  if (renewed.length > 0) return false;
  // An empty file has no chunk that would have begun it.
  if (bytes === 0) await beginUpload(context, run, upload);
  const published = await run(
    `UPDATE ${schema}.files SET file_id = $2, bytes = $3, stored_at_ms = $4 WHERE upload = $1${layout.and("", "$5")}
     RETURNING upload`,
    [upload.id, id, bytes, nowMs, ...tenant],
  );
  if (published.length === 0) throw givenUp();
  return true;
}

/** Deletes what killed processes of the scope left. Another process that does the same is not waited for. */
async function dropOldUploads(
  context: StoreContext,
  run: RunStatement,
  scope: FileScope,
  beforeMs: number,
): Promise<void> {
  const { layout } = context.found;
  const tenant = layout.values(scope);
  const old = await run(
    `SELECT upload FROM ${context.schema}.files WHERE namespace = $1 AND agent_id = $2 AND file_id IS NULL
       AND stored_at_ms < $3${layout.and("", "$4")} LIMIT 10 FOR UPDATE SKIP LOCKED`,
    [scope.namespace, scope.agentId, beforeMs, ...tenant],
  );
  for (const row of old) await deleteUpload(placeOf(context, run), String(row["upload"]), tenant);
}

/** Removes an upload, unless its commit was applied after all and only the answer was lost. */
async function drop(context: StoreContext, { id, scope }: FileUpload): Promise<void> {
  const { layout } = context.found;
  const tenant = layout.values(scope);
  await context.pool.transaction(async (run) => {
    const [upload] = await run(
      `SELECT FROM ${context.schema}.files WHERE upload = $1 AND file_id IS NULL${layout.and("", "$2")} FOR UPDATE`,
      [id, ...tenant],
    );
    if (upload !== undefined) await deleteUpload(placeOf(context, run), id, tenant);
  }, scope);
}

async function findFile(
  { pool, schema, found: { layout } }: StoreContext,
  scope: FileScope,
  id: string,
): Promise<Awaited<ReturnType<FileBackend["find"]>>> {
  const [row] = await pool.run(
    `SELECT file_id, bytes, stored_at_ms, upload FROM ${schema}.files
     WHERE namespace = $1 AND agent_id = $2 AND lower(file_id) = $3${layout.and("", "$4")}`,
    [scope.namespace, scope.agentId, id, ...layout.values(scope)],
    { isRead: true, agent: scope },
  );
  if (row === undefined) return null;
  const bytes = Number(row["bytes"]);
  return { id, bytes, storedAtMs: Number(row["stored_at_ms"]), upload: String(row["upload"]) };
}

async function findChunk(
  { pool, schema, found: { layout } }: StoreContext,
  { id, scope }: FileUpload,
  number: number,
): Promise<Uint8Array | null> {
  const [row] = await pool.run(
    `SELECT c.content FROM ${schema}.files f JOIN ${schema}.file_chunks c ON c.upload = f.upload${layout.and("c", "f.tenant")}
     WHERE f.upload = $1 AND f.namespace = $2 AND f.agent_id = $3 AND f.file_id IS NOT NULL AND c.number = $4${layout.and("f", "$5")}`,
    [id, scope.namespace, scope.agentId, number, ...layout.values(scope)],
    { isRead: true, agent: scope },
  );
  return row === undefined ? null : (row["content"] as Uint8Array);
}

async function removeFile(context: StoreContext, scope: FileScope, id: string): Promise<boolean> {
  const { layout } = context.found;
  const tenant = layout.values(scope);
  return context.pool.transaction(async (run) => {
    const [row] = await run(
      `SELECT upload FROM ${context.schema}.files
       WHERE namespace = $1 AND agent_id = $2 AND lower(file_id) = $3${layout.and("", "$4")} FOR UPDATE`,
      [scope.namespace, scope.agentId, id, ...tenant],
    );
    if (row === undefined) return false;
    await deleteUpload(placeOf(context, run), String(row["upload"]), tenant);
    return true;
  }, scope);
}

/** Finds the ids of a page first, so that a page costs the same however many references there are. */
async function listFiles(
  { pool, schema, found: { layout } }: StoreContext,
  scope: FileScope,
  afterId: string,
  limit: number,
): Promise<readonly ListedFile[]> {
  const isInScope = (row: string): string => `${row}.namespace = $1 AND ${row}.agent_id = $2${layout.and(row, "$5")}`;
  const ids = (table: string): string =>
    `(SELECT DISTINCT lower(t.file_id) AS file_id FROM ${schema}.${table} t WHERE ${isInScope("t")} AND lower(t.file_id) > $3 ORDER BY 1 LIMIT $4)`;
  const rows = await pool.run(
    `SELECT i.file_id, f.bytes, f.stored_at_ms,
       (SELECT count(*) FROM ${schema}.file_references r WHERE ${isInScope("r")} AND lower(r.file_id) = i.file_id) AS refs
     FROM (SELECT u.file_id FROM (${ids("files")} UNION ${ids("file_references")}) u ORDER BY 1 LIMIT $4) i
     LEFT JOIN ${schema}.files f ON ${isInScope("f")} AND lower(f.file_id) = i.file_id ORDER BY 1`,
    [scope.namespace, scope.agentId, afterId, limit, ...layout.values(scope)],
    { isRead: true, agent: scope },
  );
  return rows.map(listedFile);
}

function listedFile(row: DatabaseRow): ListedFile {
  const number = (value: unknown): number | null => (value === null ? null : Number(value));
  return {
    id: String(row["file_id"]),
    bytes: number(row["bytes"]),
    storedAtMs: number(row["stored_at_ms"]),
    references: Number(row["refs"]),
  };
}
