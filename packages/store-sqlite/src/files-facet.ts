import type { Durability, FilesFacet } from "@throughline/core";
import type { ListedFile } from "@throughline/core/internal";
import {
  createFilesFacet,
  type FileBackend,
  type FileUpload,
  type KeptFile,
  type PayloadCoder,
  uploadEndsMs,
} from "@throughline/store-kit/internal";
import { createFileComparison, damagedIndex } from "./compare-files.ts";
import type { Connection } from "./connection.ts";
import { deleteFilesSlice, takeOutFile } from "./file-references.ts";
import type { WriteContext } from "./store-context.ts";
import type { StoreHandle } from "./store-handle.ts";

/** Keeps files in rows of chunks, so that no transaction is larger than a chunk. */
export function createFiles(handle: StoreHandle, coder: PayloadCoder, durability: Durability): FilesFacet {
  const { life, context } = handle;
  const { limits, clock, random } = context;
  const backend = createBackend(handle, durability);
  return createFilesFacet({ backend, coder, life, limits, clock, newId: () => random.uuid() });
}

function createBackend(handle: StoreHandle, durability: Durability): FileBackend {
  // A chunk that a power cut takes belongs to an upload that was not acknowledged: the commit of `publish` flushes all.
  const quick = { durability: "process" } as const;
  const compareFiles = createFileComparison(handle);
  const deleteSlice = ({ connection }: WriteContext): boolean => deleteFilesSlice(connection);
  return {
    addChunk: (upload, number, bytes) =>
      handle.write(({ connection, clock }) => {
        const file = uploadNumber(connection, upload) ?? beginUpload(connection, upload, clock.nowMs());
        connection.database
          .prepare<[number, number, Uint8Array]>(
            "INSERT INTO store_file_chunks (file, number, content) VALUES (?, ?, ?)",
          )
          .run(file, number, bytes);
      }, quick),
    publish: (upload, file) =>
      handle.write(
        ({ connection }) => {
          giveUpOldUploads(connection, file.storedAtMs);
          return publish(connection, upload, file);
        },
        { durability },
      ),
    drop: (upload) => handle.remove(({ connection }) => giveUpUpload(connection, upload), quick, deleteSlice),
    async find(scope, id) {
      const found = await handle.read((connection) => findFile(connection, scope, id));
      if (found === null) await compareFiles();
      return found;
    },
    chunk: (upload, number) => handle.read((connection) => findChunk(connection, upload, number)),
    remove: (scope, id) =>
      handle.remove(({ connection }) => takeOutFile(connection, scope, id), { durability: "disk" }, deleteSlice),
    async list(scope, afterId, limit) {
      const files = await handle.read((connection) => listFiles(connection, scope, afterId, limit));
      if (files.length < limit) await compareFiles();
      return files;
    },
  };
}

function uploadNumber({ database }: Connection, { id }: FileUpload): number | undefined {
  return database.prepare<[string], number>("SELECT file FROM store_files WHERE upload = ?").pluck().get(id);
}

function beginUpload({ database }: Connection, { id, scope }: FileUpload, nowMs: number): number {
  const { lastInsertRowid } = database
    .prepare<[string, string, string, number]>(
      "INSERT INTO store_files (namespace, agent_id, upload, stored_at_ms) VALUES (?, ?, ?, ?)",
    )
    .run(scope.namespace, scope.agentId, id, nowMs);
  return Number(lastInsertRowid);
}

function publish(
  connection: Connection,
  upload: FileUpload,
  { id, bytes, storedAtMs }: Omit<KeptFile, "upload">,
): boolean {
  const { database } = connection;
  const { namespace, agentId } = upload.scope;
  const { changes } = database
    .prepare<[number, string, string, string]>(
      "UPDATE store_files SET stored_at_ms = ? WHERE namespace = ? AND agent_id = ? AND file_id = ?",
    )
    .run(storedAtMs, namespace, agentId, id);
  if (changes > 0) return false;
  // An empty file has no chunk that would have begun it.
  const file = uploadNumber(connection, upload) ?? beginUpload(connection, upload, storedAtMs);
  database
    .prepare<[string, number, number, number]>(
      "UPDATE store_files SET file_id = ?, bytes = ?, stored_at_ms = ? WHERE file = ?",
    )
    .run(id, bytes, storedAtMs, file);
  return true;
}

function giveUpUpload({ database }: Connection, { id }: FileUpload): void {
  database.prepare<[string]>("UPDATE store_files SET bytes = 0 WHERE upload = ? AND file_id IS NULL").run(id);
}

function giveUpOldUploads({ database }: Connection, nowMs: number): void {
  database
    .prepare<[number]>("UPDATE store_files SET bytes = 0 WHERE file_id IS NULL AND bytes IS NULL AND stored_at_ms < ?")
    .run(nowMs - uploadEndsMs);
}

/** Reads the index beside the rows: SQLite would take the columns of the index for those of the row. */
const indexed = "FROM store_files i INDEXED BY store_files_id LEFT JOIN store_files f ON f.file = i.file";
const isRow = "ifnull(f.namespace = i.namespace AND f.agent_id = i.agent_id AND f.file_id = i.file_id, 0)";

function findFile(connection: Connection, { namespace, agentId }: FileUpload["scope"], id: string): KeptFile | null {
  const { database } = connection;
  const found = database
    .prepare<[string, string, string], KeptFile & { readonly isRow: number }>(
      `SELECT i.file_id AS id, f.bytes, f.stored_at_ms AS storedAtMs, f.upload, ${isRow} AS isRow ${indexed}
       WHERE i.namespace = ? AND i.agent_id = ? AND i.file_id = ?`,
    )
    .get(namespace, agentId, id);
  if (found?.isRow === 0) throw damagedIndex();
  return found ?? null;
}

function findChunk({ database }: Connection, { id, scope }: FileUpload, number: number): Uint8Array | null {
  const found = database
    .prepare<[string, string, string, number], Uint8Array>(
      `SELECT c.content FROM store_files f CROSS JOIN store_file_chunks c ON c.file = f.file
       WHERE f.upload = ? AND f.namespace = ? AND f.agent_id = ? AND f.file_id IS NOT NULL AND c.number = ?`,
    )
    .pluck()
    .get(id, scope.namespace, scope.agentId, number);
  return found ?? null;
}

function listFiles(
  connection: Connection,
  { namespace, agentId }: FileUpload["scope"],
  afterId: string,
  limit: number,
): readonly ListedFile[] {
  type Place = [namespace: string, agentId: string, afterId: string];
  const files = connection.database
    .prepare<[...Place, ...Place, number], ListedFile & { readonly isRow: number }>(
      `SELECT id, max(bytes) AS bytes, max(stored_at_ms) AS storedAtMs, sum(refs) AS "references", min(isRow) AS isRow FROM (
         SELECT i.file_id AS id, f.bytes, f.stored_at_ms, 0 AS refs, ${isRow} AS isRow ${indexed}
         WHERE i.namespace = ? AND i.agent_id = ? AND i.file_id > ?
         UNION ALL
         SELECT r.file_id, NULL, NULL, 1, 1 FROM store_sessions s CROSS JOIN store_file_references r ON r.session = s.session
         WHERE s.namespace = ? AND s.agent_id = ? AND r.file_id > ?
       ) GROUP BY id ORDER BY id LIMIT ?`,
    )
    .all(namespace, agentId, afterId, namespace, agentId, afterId, limit);
  if (files.some((file) => file.isRow === 0)) throw damagedIndex();
  return files.map(({ id, bytes, storedAtMs, references }) => ({ id, bytes, storedAtMs, references }));
}
