import type { Connection } from "./open-connection.ts";

/**
 * Emptying a full-text index takes SQLite as long as the index is large, for every page of it is written over. So it is
 * renamed at once to names that FTS5 does not know, and deleted a few pages at a time.
 */
const putAside = [
  { table: "store_search_data", aside: "store_search_old", rowsAtOnce: 96 },
  { table: "store_search_docsize", aside: "store_search_old_sizes", rowsAtOnce: 2000 },
] as const;

/** As the second step of the schema makes it. */
const newIndex = `
  CREATE VIRTUAL TABLE store_search USING fts5 (words, names, tools, content = '', tokenize = "ascii tokenchars '_'");
  INSERT INTO store_search (store_search, rank) VALUES ('secure-delete', 1), ('automerge', 0), ('crisismerge', 200);`;

/** Replaces the index with an empty one, inside a transaction; false while an earlier renamed index still exists. */
export function beginIndexRebuild({ database }: Connection): boolean {
  if (hasOldIndex({ database })) return false;
  try {
    // SQLite keeps the tables of a virtual table from being renamed, unless it is told to.
    database.unsafeMode(true);
    for (const { table, aside } of putAside) database.exec(`ALTER TABLE ${table} RENAME TO ${aside}`);
    database.exec(`DROP TABLE store_search;${newIndex}`);
    return true;
  } finally {
    database.unsafeMode(false);
  }
}

/** True while a renamed index is not deleted. */
export function hasOldIndex({ database }: Pick<Connection, "database">): boolean {
  return putAside.some(({ aside }) => isThere(database, aside));
}

/** Deletes a part of a renamed index, inside a transaction; false when nothing is left. */
export function deleteOldIndexSlice({ database }: Connection): boolean {
  for (const { aside, rowsAtOnce } of putAside) {
    if (!isThere(database, aside)) continue;
    const some = `SELECT id FROM ${aside} ORDER BY id LIMIT ${rowsAtOnce}`;
    if (database.prepare(`DELETE FROM ${aside} WHERE id IN (${some})`).run().changes === 0)
      database.exec(`DROP TABLE ${aside}`);
    return true;
  }
  return false;
}

/** Deletes it all: whoever takes words out of the index for good takes them from there too. */
export function deleteOldIndex({ database }: Connection): void {
  for (const { aside } of putAside) if (isThere(database, aside)) database.exec(`DROP TABLE ${aside}`);
}

function isThere(database: Connection["database"], table: string): boolean {
  return (
    database
      .prepare<[string], number>("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?")
      .pluck()
      .get(table) === 1
  );
}
