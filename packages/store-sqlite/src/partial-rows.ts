import type { PartialReply } from "@throughline/core";
import type { KeptPayload } from "@throughline/core/store";
import type { Connection } from "./open-connection.ts";
import type { Session } from "./statements.ts";

/**
 * Made by the first partial that is written, and by no step of the schema: earlier versions of this package open a file that
 * has it. It hangs on its session, so that it goes with it, whichever version purges.
 */
const createTable = `CREATE TABLE IF NOT EXISTS store_partials (
  session INTEGER PRIMARY KEY REFERENCES store_sessions (session) ON DELETE CASCADE,
  fence INTEGER NOT NULL,
  turn_id TEXT NOT NULL,
  partial NOT NULL
)`;

interface PartialRow {
  readonly fence: number;
  readonly turnId: string;
  readonly partial: KeptPayload;
}

/** The open replies of sessions, one row each. */
export class PartialRows {
  readonly #present = new WeakSet<Connection>();
  #hasDropped = false;

  write({ database }: Connection, session: Session, { fence, turnId }: PartialReply, kept: KeptPayload): void {
    database.exec(createTable);
    database
      .prepare<[Session, number, string, KeptPayload]>(
        `INSERT INTO store_partials (session, fence, turn_id, partial) VALUES (?, ?, ?, ?)
         ON CONFLICT (session) DO UPDATE SET fence = excluded.fence, turn_id = excluded.turn_id, partial = excluded.partial`,
      )
      .run(session, fence, turnId, kept);
  }

  find(connection: Connection, session: Session): PartialRow | undefined {
    if (!this.#isPresent(connection)) return undefined;
    return connection.database
      .prepare<[Session], PartialRow>("SELECT fence, turn_id AS turnId, partial FROM store_partials WHERE session = ?")
      .get(session);
  }

  /** Deletes the partial of a session up to a fence: its reply is in the log by now. */
  deleteTo(connection: Connection, session: Session, fence: number): boolean {
    if (!this.#isPresent(connection)) return false;
    const { changes } = connection.database
      .prepare<[Session, number]>("DELETE FROM store_partials WHERE session = ? AND fence <= ?")
      .run(session, fence);
    return changes > 0;
  }

  /** Deletes the partial of a session whose text is to be gone for good. */
  drop(connection: Connection, session: Session): void {
    this.#hasDropped = this.deleteTo(connection, session, Number.MAX_SAFE_INTEGER) || this.#hasDropped;
  }

  /** Whether something was dropped since this was asked: the log of SQLite may still hold it. */
  takeDropped(): boolean {
    const hadDropped = this.#hasDropped;
    this.#hasDropped = false;
    return hadDropped;
  }

  #isPresent(connection: Connection): boolean {
    if (this.#present.has(connection)) return true;
    const { database } = connection;
    const found = database
      .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'store_partials'")
      .get();
    // Inside a transaction it may have been made by this very one, which may be rolled back.
    if (found !== undefined && !database.inTransaction) this.#present.add(connection);
    return found !== undefined;
  }
}
