/** One row of `sqlite_schema` as SQLite keeps it. `sql` is null for an index that SQLite creates for a constraint. */
export interface SchemaObject {
  readonly type: "table" | "index" | "view";
  readonly name: string;
  readonly table: string;
  readonly sql: string | null;
}

// SQLite keeps each statement from CREATE to its last character, so `sql` is also the text that is compared at open.
export const table = (name: string, sql: string): SchemaObject => ({ type: "table", name, table: name, sql });
export const index = (name: string, on: string, body: string, kind = "INDEX"): SchemaObject => ({
  type: "index",
  name,
  table: on,
  sql: `CREATE ${kind} ${name} ON ${on} ${body}`,
});
export const view = (name: string, query: string): SchemaObject => ({
  type: "view",
  name,
  table: name,
  sql: `CREATE VIEW ${name} AS\n${query}`,
});
