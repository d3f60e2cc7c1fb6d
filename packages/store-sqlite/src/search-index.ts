import type Database from "better-sqlite3";
import type { SearchToken } from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import type { IndexDocument, IndexedRecord, IndexTexts } from "./index-texts.ts";
import type { Session, SessionRow } from "./rows.ts";
import { createSearchIndex, renamedTables, searchRules } from "./schema.ts";

/** A batch takes a few milliseconds to read, to split into words and to write. */
const batchRows = 128;
const batchCharacters = 96 * 1024;

/** One step merges this many pages of 4 KB. */
const mergedPages = 24;

/** A session with more records than this is not removed from the index word by word. The index is rebuilt instead. */
const mostForgotten = 2000;

interface IndexState {
  readonly indexed_to: number;
  readonly rules: number;
  /** Grows with each removal from the index, because a batch that was read before may hold removed text. */
  readonly changes: number;
}

type IndexRow = [record: number, words: string, names: string, tools: string, stems: string];

/** Holds records that were split into words before the write lock is taken. */
export interface IndexBatch {
  readonly state: IndexState;
  readonly toRecord: number;
  readonly documents: readonly IndexDocument[];
}

interface SearchStatements {
  readonly state: Database.Statement<[], IndexState>;
  readonly newest: Database.Statement<[], number | null>;
  readonly count: Database.Statement<[number], number>;
  readonly insert: Database.Statement<IndexRow>;
  readonly remove: Database.Statement<IndexRow>;
  readonly clear: Database.Statement<[]>;
  readonly merge: Database.Statement<[number]>;
  readonly changes: Database.Statement<[], number>;
  readonly setState: Database.Statement<[indexedTo: number, rules: number, changes: number]>;
}

/** Backlogs up to this size are counted exactly. Larger ones are estimated from record numbers. */
const countedLag = 10_000;

/**
 * Indexes the words of one store behind the log, without delaying turns. The index holds no text, so a removal must
 * split the text into the same words again. Under a codec it holds tokens in place of words.
 */
export class SearchIndex {
  readonly #texts: IndexTexts;
  readonly #prepared = new WeakMap<Connection, SearchStatements>();

  constructor(texts: IndexTexts) {
    this.#texts = texts;
  }

  /** Returns the tokens of a namespace; null where the index holds words. */
  tokenOf(namespace: string): SearchToken | null {
    return this.#texts.tokenOf(namespace);
  }

  /** States whether nothing may be in the index, and something is, from a time when the codec gave tokens. */
  isUnwanted(connection: Connection): boolean {
    return this.#texts.isOff && this.indexedTo(connection) > 0;
  }

  /** Counts the records that the index lacks. */
  lag(connection: Connection): number {
    const { newest, count } = this.#statements(connection);
    const indexedTo = this.indexedTo(connection);
    const counted = count.get(indexedTo) ?? 0;
    return counted <= countedLag ? counted : (newest.get() ?? 0) - indexedTo;
  }

  /** True if the index lacks a record. Costs the same for any number of them, unlike `lag`. */
  isBehind(connection: Connection): boolean {
    return (this.#statements(connection).newest.get() ?? 0) > this.indexedTo(connection);
  }

  /** Returns the number of the last record that is indexed under the current rules. */
  indexedTo(connection: Connection): number {
    const { indexed_to: indexedTo, rules } = currentState(this.#statements(connection).state);
    return rules === searchRules ? indexedTo : 0;
  }

  /** Returns a number that changes whenever words were removed from the index, or all of it was. */
  changes(connection: Connection): number {
    return currentState(this.#statements(connection).state).changes;
  }

  /** Returns the next records of the log, split into words, or null when all are indexed. */
  nextBatch(connection: Connection): IndexBatch | null {
    const statements = this.#statements(connection);
    const state = currentState(statements.state);
    if (state.rules !== searchRules) return { state, toRecord: 0, documents: [] };
    const documents: IndexDocument[] = [];
    let toRecord = state.indexed_to;
    let characters = 0;
    for (let rows = 0; rows < batchRows && characters < batchCharacters; rows++) {
      const next = this.#texts.next(connection, toRecord);
      if (next === undefined) break;
      toRecord = next.record;
      characters += next.size;
      if (next.document !== null && next.document !== "lost") documents.push(next.document);
    }
    return toRecord === state.indexed_to ? null : { state, toRecord, documents };
  }

  /** Writes a batch inside a transaction. Returns false when the log or the index has changed since it was read. */
  writeBatch(connection: Connection, { state: read, toRecord, documents }: IndexBatch): boolean {
    const statements = this.#statements(connection);
    const state = currentState(statements.state);
    if (state.changes !== read.changes || state.indexed_to !== read.indexed_to || state.rules !== read.rules)
      return false;
    if (state.rules !== searchRules) this.clear(connection);
    else {
      for (const document of documents) statements.insert.run(...indexRow(document));
      statements.setState.run(toRecord, searchRules, state.changes);
    }
    return true;
  }

  /** Merges parts of the index, a few pages at a time. Returns false when there is nothing to merge. */
  merge(connection: Connection): boolean {
    const { merge, changes } = this.#statements(connection);
    const before = changes.get() ?? 0;
    merge.run(mergedPages);
    // SQLite documents this test: a merge without work changes one row.
    return (changes.get() ?? 0) - before >= 2;
  }

  /**
   * Removes the words of a record before the record is replaced. Where nothing may be in the index, the caller deletes
   * what is left of it in slices.
   */
  forgetRecord(connection: Connection, owner: SessionRow, { seq }: { readonly seq: number }): void {
    if (this.#texts.isOff) {
      if (this.isUnwanted(connection) && !this.beginAnew(connection)) this.clear(connection);
      return;
    }
    deleteOldIndex(connection);
    if (!this.#forget(connection, this.#texts.ofSpan(connection, owner.session, seq, seq))) this.clear(connection);
  }

  /** Adds the words of a record that was replaced. A record that the index has not reached is indexed later. */
  indexRecord(connection: Connection, owner: SessionRow, { seq }: { readonly seq: number }): void {
    const statements = this.#statements(connection);
    const { indexed_to: indexedTo } = currentState(statements.state);
    for (const { record, document } of this.#texts.ofSpan(connection, owner.session, seq, seq))
      if (record <= indexedTo && document !== null && document !== "lost") statements.insert.run(...indexRow(document));
  }

  /** Returns true when removing the words of a session takes longer than indexing all records again. */
  takesOutWhole(connection: Connection, session: SessionRow): boolean {
    return session.last_seq - (session.origin_seq ?? 0) > mostForgotten && this.indexedTo(connection) > 0;
  }

  /** Removes the words of some records of a session before they are deleted. */
  forgetRecords(
    connection: Connection,
    session: Session,
    { fromSeq, toSeq }: { readonly fromSeq: number; readonly toSeq: number },
  ): void {
    const isForgotten = this.#forget(connection, this.#texts.ofSpan(connection, session, fromSeq, toSeq));
    if (!isForgotten && !this.beginAnew(connection)) this.clear(connection);
  }

  /** Moves the mark back after records were deleted, because SQLite may give their numbers to new records. */
  settle(connection: Connection): void {
    const { state, newest, setState } = this.#statements(connection);
    const { indexed_to: indexedTo, rules, changes } = currentState(state);
    setState.run(Math.min(indexedTo, newest.get() ?? 0), rules, changes + 1);
  }

  /** Empties the index, which is then filled again from the log. */
  clear(connection: Connection): void {
    const { clear, state, setState } = this.#statements(connection);
    deleteOldIndex(connection);
    clear.run();
    setState.run(0, searchRules, currentState(state).changes + 1);
  }

  /**
   * Empties the index at once, however large it is: it is renamed, and `deleteOldIndexSlice` deletes it later. Returns
   * false while an earlier renamed index still exists.
   */
  beginAnew(connection: Connection): boolean {
    const { state, setState } = this.#statements(connection);
    const { changes } = currentState(state);
    if (!beginIndexRebuild(connection)) return false;
    setState.run(0, searchRules, changes + 1);
    return true;
  }

  /** Returns false, and removes nothing, when the words of a record are not known any more, because it does not decode. */
  #forget(connection: Connection, records: readonly IndexedRecord[]): boolean {
    const statements = this.#statements(connection);
    const { indexed_to: indexedTo, rules, changes } = currentState(statements.state);
    const indexed = records.filter(({ record }) => record <= indexedTo);
    if (indexed.some(({ document }) => document === "lost")) return false;
    for (const { document } of indexed)
      if (document !== null && document !== "lost") statements.remove.run(...indexRow(document));
    statements.setState.run(indexedTo, rules, changes + 1);
    return true;
  }

  /** Statements are prepared at first use, because loading the index costs more than opening the rest of the store. */
  #statements(connection: Connection): SearchStatements {
    const known = this.#prepared.get(connection);
    if (known !== undefined) return known;
    const { database } = connection;
    const made: SearchStatements = {
      state: database.prepare("SELECT indexed_to, rules, changes FROM store_search_state"),
      newest: database.prepare<[], number | null>("SELECT max(record) FROM store_records").pluck(),
      count: database
        .prepare<[number], number>(
          `SELECT count(*) FROM (SELECT 1 FROM store_records WHERE record > ? LIMIT ${countedLag + 1})`,
        )
        .pluck(),
      insert: database.prepare("INSERT INTO store_search (rowid, words, names, tools, stems) VALUES (?, ?, ?, ?, ?)"),
      remove: database.prepare(
        "INSERT INTO store_search (store_search, rowid, words, names, tools, stems) VALUES ('delete', ?, ?, ?, ?, ?)",
      ),
      merge: database.prepare("INSERT INTO store_search (store_search, rank) VALUES ('merge', ?)"),
      changes: database.prepare<[], number>("SELECT total_changes()").pluck(),
      clear: database.prepare("INSERT INTO store_search (store_search) VALUES ('delete-all')"),
      setState: database.prepare("UPDATE store_search_state SET indexed_to = ?, rules = ?, changes = ?"),
    };
    this.#prepared.set(connection, made);
    return made;
  }
}

function currentState(statement: SearchStatements["state"]): IndexState {
  return statement.get() ?? { indexed_to: 0, rules: 0, changes: 0 };
}

function indexRow({ record, words, names, tools, stems }: IndexDocument): IndexRow {
  return [record, words, names, tools, stems];
}

/**
 * Replaces the index with an empty one inside a transaction. Returns false while an earlier renamed index still exists.
 */
function beginIndexRebuild({ database }: Pick<Connection, "database">): boolean {
  if (hasOldIndex({ database })) return false;
  try {
    // SQLite does not rename the tables of a virtual table without this mode.
    database.unsafeMode(true);
    for (const { table, aside } of renamedTables) database.exec(`ALTER TABLE ${table} RENAME TO ${aside}`);
    database.exec(`DROP TABLE store_search;${createSearchIndex}`);
    return true;
  } finally {
    database.unsafeMode(false);
  }
}

/** Replaces the index with an empty one. The old one is deleted by `deleteOldIndexSlice`. */
export function emptyIndex(connection: Pick<Connection, "database">): void {
  beginIndexRebuild(connection);
  connection.database.exec("UPDATE store_search_state SET indexed_to = 0, changes = changes + 1");
}

export function hasOldIndex({ database }: Pick<Connection, "database">): boolean {
  return renamedTables.some(({ aside }) => isThere(database, aside));
}

/** Deletes a part of a renamed index inside a transaction. Returns false when nothing is left. */
export function deleteOldIndexSlice({ database }: Pick<Connection, "database">): boolean {
  for (const { aside, rowsAtOnce } of renamedTables) {
    if (!isThere(database, aside)) continue;
    const some = `SELECT id FROM ${aside} ORDER BY id LIMIT ${rowsAtOnce}`;
    if (database.prepare(`DELETE FROM ${aside} WHERE id IN (${some})`).run().changes === 0)
      database.exec(`DROP TABLE ${aside}`);
    return true;
  }
  return false;
}

/** Deletes all of a renamed index, because words that are removed for good must leave it too. */
function deleteOldIndex({ database }: Connection): void {
  for (const { aside } of renamedTables) if (isThere(database, aside)) database.exec(`DROP TABLE ${aside}`);
}

function isThere(database: Connection["database"], table: string): boolean {
  return (
    database
      .prepare<[string], number>("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?")
      .pluck()
      .get(table) === 1
  );
}
