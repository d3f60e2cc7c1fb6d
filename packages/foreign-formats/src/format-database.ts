/** Reads a database without changing it. */
export interface RowQueries {
  /** Returns the names of a table's columns; empty when the table does not exist. */
  columns(table: string): ReadonlySet<string>;
  /** Returns all rows of a query at once, for small results. `values` fill the `?` of the query. */
  all(sql: string, ...values: readonly (string | number)[]): readonly DatabaseFields[];
  /** Returns the rows of a query one by one, because a table may be larger than memory. */
  iterate(sql: string, ...values: readonly (string | number)[]): Iterable<DatabaseFields>;
}

/** Holds the columns of a row by name. */
export type DatabaseFields = Readonly<Record<string, unknown>>;

/** Describes a database in which a program stores its sessions. */
export interface FormatDatabase {
  /** Lists tables and columns. A database with all of them belongs to the program. */
  readonly tables: Readonly<Record<string, readonly string[]>>;
  /**
   * Returns the sessions of the database in a stable order.
   *
   * @param isKnown returns true for a session that need not be read. A format without a version of its sessions does not
   *   ask.
   */
  sessions(database: RowQueries, isKnown?: KnownSession): Iterable<DatabaseSession>;
}

/** Returns true if a session was read at this version before. */
export type KnownSession = (sessionId: string, version: SessionVersion) => boolean;

/** Describes a session by little of it. */
export interface SessionVersion {
  /** Differs after each change of the session. */
  readonly text: string;
  /** States when the session was last changed, in milliseconds since 1970. */
  readonly changedMs: number;
}

/** Holds one session of a database. */
export interface DatabaseSession {
  /** States the id that the program's database gives the session. */
  readonly sessionId: string;
  /** Holds fields of the session's entry. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** States the id of the session that spawned this one, or null. */
  readonly spawnedBy: string | null;
  /** Holds one sentence for each part of the session that no line contains. @default none */
  readonly unread?: readonly string[];
  /** Returns a JSON object without line feeds for each item. The same rows give the same texts. */
  lines(): Iterable<string>;
}

/** A JSON column is put on one line, because a line is an item. A text that is not JSON becomes a JSON string. */
export function jsonLine(text: unknown): string {
  if (typeof text !== "string") return JSON.stringify(text) ?? "null";
  if (!text.includes("\n") && isJson(text)) return text;
  const value = isJson(text) ? (JSON.parse(text) as unknown) : text;
  return JSON.stringify(value);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // The text was cut off or written by hand, so it is kept as a string.
    return false;
  }
}
