import { createFinding } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import type { RunStatement } from "./connection-pool.ts";
import { unsampledColumns } from "./policy-parts.ts";
import { ownNamesInside } from "./statement-settings.ts";
import type { StoreContext } from "./store-context.ts";

/** This row of `store_info` names the files of the search index that still hold words of erased records. */
const erasedName = "erased_words_in";

/**
 * Finds the files of the word index, one for each partition. REINDEX creates new files, so an old note no longer
 * matches.
 */
function indexFiles(schema: string): string {
  return `SELECT array_agg(pg_relation_filenode(x.oid) ORDER BY x.oid) AS files
    FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am a ON a.oid = x.relam
    JOIN pg_class t ON t.oid = i.indrelid
    WHERE t.relnamespace = (SELECT c.relnamespace FROM pg_class c WHERE c.oid = '${schema}.store_info'::regclass)
      AND t.relname LIKE 'search\\_documents%' AND x.relkind = 'i' AND a.amname = 'gin'`;
}

/**
 * Creates the function that notes a deletion from the search index. It runs with the rights of the tables' owner,
 * because the roles of programs may not write to `store_info`. It takes no argument and writes only the note.
 */
export function noteErasedFunction(schema: string): string {
  const info = `${schema}.store_info`;
  return `
CREATE FUNCTION ${schema}.note_erased_words_1() RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
${ownNamesInside} AS $note$
BEGIN
  INSERT INTO ${info} (name, value) SELECT '${erasedName}', f.files::text FROM (${indexFiles(schema)}) f
    WHERE f.files IS NOT NULL
      AND NOT EXISTS (SELECT FROM ${info} i WHERE i.name = '${erasedName}' AND i.value = f.files::text)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
END $note$;`;
}

/** Notes that documents were deleted, because PostgreSQL never removes a word from a GIN index by itself. */
export async function noteErasedWords({ schema }: StoreContext, run: RunStatement): Promise<void> {
  await run(`SELECT ${schema}.note_erased_words_1()`);
}

/** Reports erased content that the server still holds outside of the tables. */
export async function leftoverFindings(
  { schema, pool }: StoreContext,
  signal: AbortSignal | undefined,
): Promise<readonly Finding[]> {
  // A transaction ignores the names in the caller's search_path.
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
        : `The statistics of ${table}.${name} may hold erased content. As a superuser run \`DELETE FROM pg_statistic WHERE starelid = '${table}'::regclass\`.`;
    return createFinding("ERASURE_INCOMPLETE", message, { path });
  });
}
