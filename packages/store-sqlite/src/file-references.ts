import { fileIdsOf } from "@throughline/core/internal";
import type { SessionRecord } from "@throughline/core";
import type { Connection } from "./connection.ts";
import type { Session, SessionRow } from "./rows.ts";

/** Notes which files a new record refers to, in the commit of the record. */
export function enterReferences(
  { database }: Pick<Connection, "database">,
  session: Session,
  seq: number,
  record: SessionRecord,
): void {
  const ids = fileIdsOf(record);
  if (ids.length === 0) return;
  const insert = database.prepare<[Session, number, string]>(
    "INSERT OR IGNORE INTO store_file_references (session, seq, file_id) VALUES (?, ?, ?)",
  );
  for (const id of ids) insert.run(session, seq, id);
}

/** A fork shows the records of its origin, so it refers to their files too. */
export function shareReferences({ database }: Connection, origin: Session, fork: Session, atSeq: number): void {
  database
    .prepare<[Session, Session, number]>(
      `INSERT INTO store_file_references (session, seq, file_id)
       SELECT ?, seq, file_id FROM store_file_references WHERE session = ? AND seq <= ?`,
    )
    .run(fork, origin, atSeq);
}

/** Removes what a session refers to, and every file to which nothing else does. Call it while the row has its scope. */
export function dropReferences(connection: Connection, { session, namespace, agent_id: agentId }: SessionRow): void {
  const { database } = connection;
  const ids = database
    .prepare<[Session], string>("SELECT DISTINCT file_id FROM store_file_references WHERE session = ?")
    .pluck()
    .all(session);
  if (ids.length === 0) return;
  database.prepare<[Session]>("DELETE FROM store_file_references WHERE session = ?").run(session);
  takeOutUnreferenced(connection, { namespace, agentId }, ids);
}

/**
 * Removes what one record refers to, in every session that shows it, except what its redacted form still names.
 * @param sharers the sessions that show the record, all of the namespace and agent of `session`
 */
export function dropReferencesOfRecord(
  connection: Connection,
  { session, namespace, agent_id: agentId }: SessionRow,
  { seq, sharers }: { readonly seq: number; readonly sharers: readonly SessionRow[] },
  keptIds: () => readonly string[],
): void {
  const { database } = connection;
  const ids = database
    .prepare<[Session, number], string>("SELECT file_id FROM store_file_references WHERE session = ? AND seq = ?")
    .pluck()
    .all(session, seq);
  if (ids.length === 0) return;
  const kept = keptIds();
  const gone = ids.filter((id) => !kept.includes(id));
  const remove = database.prepare<[Session, number, string]>(
    "DELETE FROM store_file_references WHERE session = ? AND seq = ? AND file_id = ?",
  );
  for (const sharer of sharers) for (const id of gone) remove.run(sharer.session, seq, id);
  takeOutUnreferenced(connection, { namespace, agentId }, gone);
}

function takeOutUnreferenced(
  connection: Connection,
  scope: { readonly namespace: string; readonly agentId: string },
  ids: readonly string[],
): void {
  const { namespace, agentId } = scope;
  const isReferenced = connection.database.prepare<[string, string, string]>(
    `SELECT 1 FROM store_file_references r CROSS JOIN store_sessions s ON s.session = r.session
     WHERE r.file_id = ? AND s.namespace = ? AND s.agent_id = ? LIMIT 1`,
  );
  for (const id of ids) if (isReferenced.get(id, namespace, agentId) === undefined) takeOutFile(connection, scope, id);
}

/** Hides a file from every reader. `deleteFilesSlice` deletes its chunks. Returns whether there was one. */
export function takeOutFile(
  { database }: Connection,
  { namespace, agentId }: { readonly namespace: string; readonly agentId: string },
  id: string,
): boolean {
  const { changes } = database
    .prepare<[string, string, string]>(
      "UPDATE store_files SET file_id = NULL WHERE namespace = ? AND agent_id = ? AND file_id = ?",
    )
    .run(namespace, agentId, id);
  return changes > 0;
}

/** One transaction deletes at most this many chunks: 2 MiB, in a few milliseconds. */
const sliceChunks = 8;

/**
 * Deletes a slice of the chunks of files that are taken out, and of uploads that were given up. Returns false when
 * nothing is left.
 */
export function deleteFilesSlice({ database }: Pick<Connection, "database">): boolean {
  const file = outFile(database);
  if (file === undefined) return false;
  const { changes } = database
    .prepare<[number, number, number]>(
      `DELETE FROM store_file_chunks WHERE file = ? AND number IN
       (SELECT number FROM store_file_chunks WHERE file = ? LIMIT ?)`,
    )
    .run(file, file, sliceChunks);
  if (changes < sliceChunks) database.prepare<[number]>("DELETE FROM store_files WHERE file = ?").run(file);
  return true;
}

/** Returns whether chunks are left of a file that is taken out, also by a process that was killed since. */
export function hasOutFiles({ database }: Pick<Connection, "database">): boolean {
  return outFile(database) !== undefined;
}

/** A file that is taken out has a size and no id; an upload that arrives has neither. */
function outFile(database: Connection["database"]): number | undefined {
  return database
    .prepare<[], number>("SELECT file FROM store_files WHERE file_id IS NULL AND bytes IS NOT NULL LIMIT 1")
    .pluck()
    .get();
}
