import type { FilesFacet, Finding } from "@throughline/core";
import { createFinding } from "@throughline/core/internal";
import { fileChunkBytes, isFileIntact } from "@throughline/store-kit/internal";
import type { Connection } from "../connection.ts";
import type { StoreHandle } from "../store-handle.ts";
import { readable } from "./readable.ts";

/** Names a file of a store, with what its row states. */
export interface FileRow {
  readonly file: number;
  readonly namespace: string;
  readonly agentId: string;
  readonly id: string;
  readonly bytes: number;
}

const rowsAtOnce = 200;

/** Yields the rows of all files in slices, in order of their number. */
export async function* fileRows(handle: StoreHandle, signal?: AbortSignal): AsyncGenerator<readonly FileRow[]> {
  for (let last = 0; ;) {
    const after = last;
    const rows = await handle.read((connection) => rowsAfter(connection, after), signal);
    const end = rows.at(-1);
    if (end === undefined) return;
    yield rows;
    last = end.file;
  }
}

function rowsAfter({ database }: Connection, file: number): readonly FileRow[] {
  return database
    .prepare<[number, number], FileRow>(
      `SELECT file, namespace, agent_id AS agentId, file_id AS id, bytes FROM store_files
       WHERE file > ? AND file_id IS NOT NULL ORDER BY file LIMIT ?`,
    )
    .all(file, rowsAtOnce);
}

/** Finds files without all of their chunks, and in a full check files whose bytes changed. */
export async function* verifyFiles(
  handle: StoreHandle,
  files: FilesFacet,
  { full, signal }: { readonly full: boolean; readonly signal: AbortSignal | undefined },
): AsyncGenerator<Finding> {
  const { path } = handle.context;
  const damaged = (what: string): Finding =>
    createFinding("STORE_DAMAGED", `${path} is damaged: ${what} cannot be read.`, { path });
  const lists = fileRows(handle, signal);
  for (;;) {
    const next = await readable(() => lists.next());
    if (next === undefined) return yield damaged("the list of the files");
    if (next.done === true) return;
    for (const row of next.value)
      if ((await readable(() => isWhole(handle, files, row, { full, signal }))) !== true)
        yield damaged(`the file ${row.id}`);
  }
}

async function isWhole(
  handle: StoreHandle,
  files: FilesFacet,
  { file, id, bytes, namespace, agentId }: FileRow,
  { full, signal }: { readonly full: boolean; readonly signal: AbortSignal | undefined },
): Promise<boolean> {
  if (full) return isFileIntact(files, { namespace, agentId }, id, signal);
  const chunks = await handle.read(({ database }) => chunkCount(database, file), signal);
  return chunks === Math.ceil(bytes / fileChunkBytes);
}

function chunkCount(database: Connection["database"], file: number): number | undefined {
  return database.prepare<[number], number>("SELECT count(*) FROM store_file_chunks WHERE file = ?").pluck().get(file);
}
