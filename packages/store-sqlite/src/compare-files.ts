import { setImmediate as pause } from "node:timers/promises";
import { refused } from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import type { StoreHandle } from "./store-handle.ts";

/** This many rows are compared in one turn of the event loop, in a few milliseconds. */
const rowsAtOnce = 1000;

/** Returns an error that names no row, because a damaged row names nothing. */
export function damagedIndex(): Error {
  return refused("STORE_CORRUPT", "An index of the files is damaged: it does not fit their rows.", {});
}

/**
 * Returns a function that compares the indexes of files and of references with the rows, once for each handle. A file that
 * is not found, and the end of a list, may be the work of a damaged index.
 */
export function createFileComparison(handle: StoreHandle): () => Promise<void> {
  let compared: Promise<void> | null = null;
  return () => {
    compared ??= compare(handle).catch((error: unknown) => {
      compared = null;
      throw error;
    });
    return compared;
  };
}

/** @throws {ThroughlineError} STORE_CORRUPT when an index does not fit its rows */
async function compare(handle: StoreHandle): Promise<void> {
  for (let after: number | null = 0; after !== null; await pause()) {
    const from: number = after;
    after = await handle.read((connection) => compareFiles(connection, from));
  }
  for (let after: Reference | null = ["", 0, 0]; after !== null; await pause()) {
    const from: Reference = after;
    after = await handle.read((connection) => compareReferences(connection, from));
  }
}

/** Returns the last file of the slice, or null behind the last one. */
function compareFiles({ database }: Connection, after: number): number | null {
  const rows = database
    .prepare<[number, number], readonly [file: number, isIndexed: number]>(
      `SELECT f.file, f.file_id IS NULL OR EXISTS (
         SELECT 1 FROM store_files i INDEXED BY store_files_id WHERE i.namespace = f.namespace
         AND i.agent_id = f.agent_id AND i.file_id = f.file_id AND i.file = f.file)
       FROM store_files f NOT INDEXED WHERE f.file > ? ORDER BY f.file LIMIT ?`,
    )
    .raw()
    .all(after, rowsAtOnce);
  if (rows.some(([, isIndexed]) => isIndexed === 0)) throw damagedIndex();
  return rows.length < rowsAtOnce ? null : (rows.at(-1)?.[0] ?? null);
}

type Reference = readonly [fileId: string, session: number, seq: number];

function compareReferences({ database }: Connection, after: Reference): Reference | null {
  const rows = database
    .prepare<[...Reference, number], readonly [...Reference, isRow: number]>(
      `SELECT i.file_id, i.session, i.seq, EXISTS (
         SELECT 1 FROM store_file_references r
         WHERE r.session = i.session AND r.seq = i.seq AND r.file_id = i.file_id)
       FROM store_file_references i INDEXED BY store_file_references_file
       WHERE (i.file_id, i.session, i.seq) > (?, ?, ?) ORDER BY i.file_id, i.session, i.seq LIMIT ?`,
    )
    .raw()
    .all(...after, rowsAtOnce);
  if (rows.some(([, , , isRow]) => isRow === 0)) throw damagedIndex();
  const last = rows.at(-1);
  return last === undefined || rows.length < rowsAtOnce ? null : [last[0], last[1], last[2]];
}
