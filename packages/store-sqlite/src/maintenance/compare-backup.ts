import { createFinding } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { databasePath } from "../file-facts.ts";
import { backupsBeside, lookInto } from "../store-file.ts";
import type { SqliteDriver } from "../connection.ts";
import { storeError } from "../sqlite-errors.ts";
import type { Session, SessionRow } from "../rows.ts";
import type { StoreHandle } from "../store-handle.ts";

const sliceRows = 200;

type KnownSession = Pick<SessionRow, "session" | "session_id" | "last_seq">;

/**
 * Reports sessions of which the newest backup beside the store has more records than the store. A log never gets
 * shorter, so the missing records were lost. This happens when the log of the database was deleted together with its
 * index.
 */
export async function* behindBackup(
  handle: StoreHandle,
  driver: SqliteDriver,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  const { path } = handle.context;
  const [backup] = backupsBeside(databasePath(path));
  if (backup === undefined || !isOneFile(backup)) return;
  for (let after = 0; ;) {
    const known = sessionsOf(backup, driver, after);
    for (const { session, session_id: id, last_seq: lastSeq } of known) {
      const row = await handle.read(({ statements }) => statements.findSession.get(session), signal);
      if (row === undefined || row.session_id !== id || row.last_seq >= lastSeq) continue;
      const message = `${row.key} has ${row.last_seq} records; the backup ${backup} has ${lastSeq} of it.`;
      yield createFinding("RECORD_MISSING", message, { path, key: row.key });
    }
    const last = known.at(-1);
    if (last === undefined) return;
    after = last.session;
  }
}

/** SQLite creates a log beside a file whose header states one, even when it only reads. */
function isOneFile(path: string): boolean {
  const header = Buffer.alloc(20);
  const length = lookInto(path, (read) => read(header, 0));
  return length === 20 && header[18] === 1;
}

/** Returns no sessions of a file that cannot be read. The error belongs to the restore of that backup. */
function sessionsOf(backup: string, driver: SqliteDriver, after: Session): readonly KnownSession[] {
  const sql = `SELECT session, session_id, last_seq FROM store_sessions WHERE session > ? ORDER BY session LIMIT ${sliceRows}`;
  try {
    const database = driver(backup, { readonly: true, fileMustExist: true, timeout: 50 });
    try {
      return database.prepare<[Session], KnownSession>(sql).all(after);
    } finally {
      database.close();
    }
  } catch (error) {
    if (storeError(error, backup).code === "INTERNAL") throw error;
    return [];
  }
}
