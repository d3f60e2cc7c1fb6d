import Database from "better-sqlite3";
import type { SqliteDriver } from "../src/connection.ts";

/** A driver under which commits fail as they do on a broken disk, and which counts what is asked of the database. */
export interface FaultyDriver {
  readonly driver: SqliteDriver;
  /** The next commit fails with this code of SQLite's. After SQLITE_FULL nothing was written, after the others all of it. */
  failNextCommit(code: string): void;
  /** The same for another statement. */
  failNext(sql: string, code: string): void;
  /** Calls back before each statement. */
  before(look: (sql: string) => void): void;
  /** The statements run since the driver was made. */
  statements(): readonly string[];
}

export function createFaultyDriver(): FaultyDriver {
  let failure: { readonly sql: string; readonly code: string } | null = null;
  const statements: string[] = [];
  let look: (sql: string) => void = () => undefined;
  const counted = new Set(["run", "get", "all"]);
  const watched = <Statement extends object>(statement: Statement, sql: string): Statement =>
    new Proxy(statement, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...values: unknown[]): unknown => {
          if (counted.has(String(name))) {
            look(sql);
            statements.push(sql);
          }
          const code = sql === failure?.sql && counted.has(String(name)) ? failure.code : null;
          if (code !== null) failure = null;
          const isWritten = code !== "SQLITE_FULL";
          const result: unknown = isWritten ? Reflect.apply(value, target, values) : undefined;
          if (code !== null) throw new Database.SqliteError("a fault of the test", code);
          // `pluck` and its kin give the statement itself.
          return result === target ? watched(target, sql) : result;
        };
      },
    });
  const driver: SqliteDriver = (path, options) => {
    const database = new Database(path, options);
    const prepare = database.prepare.bind(database) as (sql: string) => object;
    database.prepare = ((sql: string) => watched(prepare(sql), sql)) as typeof database.prepare;
    return database;
  };
  return {
    driver,
    failNextCommit: (code) => (failure = { sql: "COMMIT", code }),
    failNext: (sql, code) => (failure = { sql, code }),
    before: (given) => (look = given),
    statements: () => statements,
  };
}
