/** Reads a database, and changes nothing in it. */
export interface RowQueries {
  /** The names of a table's columns; empty when there is no such table. */
  columns(table: string): ReadonlySet<string>;
  /** All rows of a query at once, for results that are small; `values` take the places of its `?`. */
  all(sql: string, ...values: readonly (string | number)[]): readonly DatabaseFields[];
  /** Row by row: a table may be larger than memory. */
  iterate(sql: string, ...values: readonly (string | number)[]): Iterable<DatabaseFields>;
}

/** The columns of a row by their names. */
export type DatabaseFields = Readonly<Record<string, unknown>>;

/** A database in which a program keeps its sessions. */
export interface FormatDatabase {
  /** A database that has all of these columns is the program's. */
  readonly tables: Readonly<Record<string, readonly string[]>>;
  /** Its sessions, in an order that stays the same. */
  sessions(database: RowQueries): Iterable<DatabaseSession>;
}

/** A session in a database. */
export interface DatabaseSession {
  /** The id that the program's database gives the session. */
  readonly sessionId: string;
  /** Fields of the entry. */
  readonly entry: Readonly<Record<string, unknown>>;
  /** The session that spawned it, by its id in the database. */
  readonly spawnedBy: string | null;
  /** What of the session no line has, in a sentence each. Absent: nothing. */
  readonly unread?: readonly string[];
  /** A JSON object for each unit, without line feeds. The same rows give the same texts. */
  lines(): Iterable<string>;
}

/** The JSON of a column as one line; a text that is no JSON becomes a JSON string. */
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
    // Cut off, or written by hand: it is kept as the text that it is.
    return false;
  }
}
