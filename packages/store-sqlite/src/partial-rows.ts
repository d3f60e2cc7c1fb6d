import type { PartialReply } from "@throughline/core";
import type { KeptPayload } from "@throughline/store-kit/internal";
import type { Statement } from "better-sqlite3";
import type { Connection } from "./connection.ts";
import type { Session } from "./rows.ts";

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

interface PartialStatements {
  readonly write: Statement<[Session, number, string, KeptPayload]>;
  readonly find: Statement<[Session], PartialRow>;
  readonly deleteTo: Statement<[Session, number]>;
}

/** The open replies of sessions, one row each. */
export class PartialRows {
  /** Prepared once a connection, when the table is there. */
  readonly #statements = new WeakMap<Connection, PartialStatements>();
  readonly #lookups = new WeakMap<Connection, Statement<[], number>>();
  #hasDropped = false;

  write(connection: Connection, session: Session, { fence, turnId }: PartialReply, kept: KeptPayload): void {
    const written = this.#withTable(connection, (statements) => statements.write.run(session, fence, turnId, kept));
    if (written !== undefined) return;
    connection.database.exec(createTable);
    (this.#statements.get(connection) ?? this.#prepare(connection)).write.run(session, fence, turnId, kept);
  }

  find(connection: Connection, session: Session): PartialRow | undefined {
    return this.#withTable(connection, ({ find }) => find.get(session));
  }

  /** Deletes the partial of a session up to a fence: its reply is in the log by now. */
  deleteTo(connection: Connection, session: Session, fence: number): boolean {
    const changes = this.#withTable(connection, ({ deleteTo }) => deleteTo.run(session, fence).changes);
    return (changes ?? 0) > 0;
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

  /** Undefined without the table; the transaction that made it may have been rolled back. */
  #withTable<Result>(connection: Connection, run: (statements: PartialStatements) => Result): Result | undefined {
    const known = this.#statements.get(connection);
    if (known === undefined && !this.#hasTable(connection)) return undefined;
    try {
      return run(known ?? this.#prepare(connection));
    } catch (error) {
      if (known === undefined || this.#hasTable(connection)) throw error;
      return undefined;
    }
  }

  #hasTable(connection: Connection): boolean {
    let lookup = this.#lookups.get(connection);
    if (lookup === undefined) {
      lookup = connection.database
        .prepare<[], number>("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'store_partials'")
        .pluck();
      this.#lookups.set(connection, lookup);
    }
    return lookup.get() !== undefined;
  }

  #prepare(connection: Connection): PartialStatements {
    const { database } = connection;
    const statements: PartialStatements = {
      write: database.prepare(
        `INSERT INTO store_partials (session, fence, turn_id, partial) VALUES (?, ?, ?, ?)
         ON CONFLICT (session) DO UPDATE SET fence = excluded.fence, turn_id = excluded.turn_id, partial = excluded.partial`,
      ),
      find: database.prepare("SELECT fence, turn_id AS turnId, partial FROM store_partials WHERE session = ?"),
      deleteTo: database.prepare("DELETE FROM store_partials WHERE session = ? AND fence <= ?"),
    };
    this.#statements.set(connection, statements);
    return statements;
  }
}
