import Database from "better-sqlite3";

/** Opens databases as better-sqlite3 does; another build of it may take its place. */
export type SqliteDriver = (
  path: string,
  options: { readonly fileMustExist?: boolean; readonly readonly?: boolean; readonly timeout?: number },
) => Database.Database;

export const defaultDriver: SqliteDriver = (path, options) => new Database(path, options);
