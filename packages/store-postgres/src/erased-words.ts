import { createFinding, type Finding } from "@throughline/core";
import type { RunStatement } from "./connection-pool.ts";
import { unsampledColumns } from "./policy-parts.ts";
import type { StoreContext } from "./store-context.ts";

/** The row of `store_info` that holds the files of the search index in which words of erased records are left. */
const erasedName = "erased_words_in";

/** The files of the index of words, one for each partition. REINDEX gives it others. */
function indexFiles(schema: string): string {
  return `SELECT array_agg(pg_relation_filenode(x.oid) ORDER BY x.oid) AS files
    FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am a ON a.oid = x.relam
    JOIN pg_class t ON t.oid = i.indrelid
    WHERE t.relnamespace = (SELECT c.relnamespace FROM pg_class c WHERE c.oid = '${schema}.store_info'::regclass)
      AND t.relname LIKE 'search\\_documents%' AND x.relkind = 'i' AND a.amname = 'gin'`;
}

/**
 * Notes that documents were deleted from the search index: PostgreSQL never takes a word out of a GIN index by itself. A role
 * that row security limits may not write the note.
 */
export async function noteErasedWords({ schema }: StoreContext, run: RunStatement): Promise<void> {
  const info = `${schema}.store_info`;
  // In a block: PostgreSQL refuses a statement that writes to a table before it looks at the conditions.
  await run(
    `DO $note$ BEGIN
     IF NOT row_security_active('${info}')
       AND has_table_privilege('${info}', 'INSERT') AND has_table_privilege('${info}', 'UPDATE') THEN
       INSERT INTO ${info} (name, value) SELECT '${erasedName}', f.files::text FROM (${indexFiles(schema)}) f
       WHERE f.files IS NOT NULL
         AND NOT EXISTS (SELECT FROM ${info} i WHERE i.name = '${erasedName}' AND i.value = f.files::text)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value;
     END IF;
     END $note$`,
  );
}

/** Findings on erased content that the server still holds outside of the tables. */
export async function leftoverFindings(
  { schema, pool }: StoreContext,
  signal: AbortSignal | undefined,
): Promise<readonly Finding[]> {
  // In a transaction, which gives names of the caller's search_path no meaning.
  const query = `SELECT NULL AS table_name, NULL AS name FROM ${schema}.store_info i CROSS JOIN (${indexFiles(schema)}) f
     WHERE i.name = '${erasedName}' AND i.value::oid[] && f.files
     UNION ALL SELECT DISTINCT on_table::text, name FROM (${unsampledColumns(schema)}) s`;
  signal?.throwIfAborted();
  const found = await pool.transaction((run) => run(query));
  const { place: path } = pool;
  return found.map(({ table_name: table, name }) => {
    const message =
      table === null
        ? `Words of erased records are left in the search index. Run \`REINDEX INDEX CONCURRENTLY ${schema}.search_documents_words\`.`
        : `The statistics of ${table}.${name} are from an earlier version and may hold erased content. As a superuser run \`DELETE FROM pg_statistic WHERE starelid = '${table}'::regclass\`.`;
    return createFinding("ERASURE_INCOMPLETE", message, { path });
  });
}
