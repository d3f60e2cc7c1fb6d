import { quote, refused } from "@throughline/core/internal";
import type Database from "better-sqlite3";
import type { SchemaObject } from "./schema-objects.ts";
import { renamedTables, schemaObjects } from "./schema.ts";
import { vectorObjects } from "./vector-schema.ts";

const rowText = ({ type, name, table: on, sql }: SchemaObject): string => [type, name, on, sql].join("\n");

const expected: ReadonlyMap<string, string> = new Map(schemaObjects.map((each) => [rowText(each), each.name]));
/** The tables of a replaced search index keep these names until they are deleted. No query reads them. */
const allowed: ReadonlySet<string> = new Set(renamedTables.map(({ aside }) => aside));
/** These are there once vectors were asked for. */
const optional: ReadonlySet<string> = new Set(vectorObjects.map(rowText));

/**
 * Compares the rows of `sqlite_schema` with what this version creates, because SQLite has no checksum of them. One changed
 * byte in the text of an index hides rows from queries. Tables of the caller are left alone, unless they begin with `store_`.
 * Returns what is wrong, or null.
 */
export function schemaDamage(database: Database.Database): string | null {
  const missing = new Map(expected);
  let unknown: string | null = null;
  const rows = database
    .prepare<[], SchemaObject & { readonly rootpage: number }>(
      'SELECT type, name, tbl_name AS "table", sql, rootpage FROM sqlite_schema',
    )
    .all();
  const roots = new Set<number>();
  for (const row of rows) {
    // A view and a virtual table have no page. Two objects with one page read the rows of each other.
    if (row.rootpage !== 0 && roots.has(row.rootpage))
      return `Its schema is damaged: ${quote(row.name)} has the page of another object.`;
    roots.add(row.rootpage);
    const text = rowText(row);
    if (missing.delete(text) || allowed.has(row.name) || optional.has(text)) continue;
    if (String(row.name).startsWith("store_")) unknown ??= String(row.name);
  }
  const [differing = unknown] = missing.values();
  return differing === null ? null : `Its schema is not what was written: ${quote(differing)} differs.`;
}

/** @throws {ThroughlineError} STORE_CORRUPT when the schema is not what this version creates */
export function assertSchema(database: Database.Database, path: string): void {
  const damage = schemaDamage(database);
  if (damage !== null) throw refused("STORE_CORRUPT", `${path} is damaged. ${damage}`, { path });
}
