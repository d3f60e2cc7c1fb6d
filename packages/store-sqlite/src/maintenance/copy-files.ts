import type { Finding } from "@throughline/core";
import { createFinding } from "@throughline/core/internal";
import type { RecordRow } from "@throughline/store-kit/internal";
import type { Connection } from "../connection.ts";
import { enterReferences } from "../file-references.ts";
import { recordOf } from "../record-rows.ts";
import { placeOf, type SessionRow } from "../rows.ts";
import type { StoreContext } from "../store-context.ts";
import type { StoreHandle } from "../store-handle.ts";
import { readable } from "./readable.ts";
import { fileRows, type FileRow } from "./verify-files.ts";

/** The table of references is not read, because the records state them too. */
export function copyReferences(context: StoreContext, copy: Connection, session: SessionRow, row: RecordRow): void {
  const { text } = row;
  // Few records have files, and decoding every record would take longer than the rest of the repair.
  if (typeof text === "string" && !text.includes('"fileId"')) return;
  const { record } = recordOf(context.rows, placeOf(session), row, "record");
  enterReferences(copy, session.session, row.seq, record);
}

/** Copies each file whose chunks SQLite reads, and yields a finding for each other one. */
export async function* copyFiles(
  handle: StoreHandle,
  copy: Connection,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  const { path } = handle.context;
  const lost = (what: string): Finding =>
    createFinding("STORE_DAMAGED", `${what} could not be read, and is not in the copy.`, { path });
  const rows = fileRows(handle, signal);
  for (;;) {
    const next = await readable(() => rows.next());
    if (next === undefined) return yield lost("The list of the files");
    if (next.done === true) return;
    for (const row of next.value)
      if ((await readable(async () => (await copyFile(handle, copy, row, signal), true))) === undefined)
        yield lost(`The file ${row.id}`);
  }
}

/** A chunk is bound to its upload, so the copy keeps the bytes and the upload as they are. */
async function copyFile(
  handle: StoreHandle,
  { database }: Connection,
  { file }: FileRow,
  signal: AbortSignal | undefined,
): Promise<void> {
  const row = await handle.read(
    (connection) =>
      connection.database
        .prepare<[number], Record<string, unknown>>("SELECT * FROM store_files WHERE file = ?")
        .get(file),
    signal,
  );
  if (row === undefined) return;
  const insert = database.prepare<[number, number, Uint8Array]>(
    "INSERT INTO store_file_chunks (file, number, content) VALUES (?, ?, ?)",
  );
  const names = Object.keys(row);
  database
    .prepare(`INSERT INTO store_files (${names.join(", ")}) VALUES (${names.map((name) => `@${name}`).join(", ")})`)
    .run(row);
  for (let number = 0; ; number++) {
    const at = number;
    const content = await handle.read(
      (connection) =>
        connection.database
          .prepare<[number, number], Uint8Array>("SELECT content FROM store_file_chunks WHERE file = ? AND number = ?")
          .pluck()
          .get(file, at),
      signal,
    );
    if (content === undefined) return;
    insert.run(file, number, content);
  }
}
