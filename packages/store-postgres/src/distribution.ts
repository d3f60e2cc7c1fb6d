import { ThroughlineError } from "@throughline/core";
import type { Layout } from "./layout.ts";
import { takeMigrationLock, type MigrationPlace } from "./migration-place.ts";

/** What the server must run where the rows are: called from another node, their statements cannot be passed on. */
const functions = ["append_1", "save_1", "read_page_1", "read_window_1"];

/** Whether the sessions lie on several nodes of Citus, or on one that others pass statements on to. */
const isDistributedTable = (schema: string): string =>
  `EXISTS (SELECT FROM pg_catalog.pg_dist_partition d WHERE d.logicalrelid = '${schema}.sessions'::regclass)`;

/** The store's functions that the server does not know as distributed. */
const undistributed = (schema: string): string => `SELECT p.oid::regprocedure AS name FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_class i ON i.relnamespace = p.pronamespace
  WHERE i.oid = '${schema}.store_info'::regclass AND p.proname IN (${functions.map((name) => `'${name}'`).join(", ")})
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_dist_object o WHERE o.classid = 'pg_catalog.pg_proc'::regclass
      AND o.objid = p.oid AND o.colocationid IS NOT NULL)`;

/** The statement that has them run where their tenant is, or where the schema is; one after the other, as Citus wants it. */
function distributeFunctions(schema: string, { name }: Layout): string {
  const how =
    name === "tenant" ? `'p_tenant', colocate_with => '${schema}.agents'` : `colocate_with => '${schema}.sessions'`;
  return `DO $functions$ DECLARE v_name regprocedure; BEGIN FOR v_name IN ${undistributed(schema).replaceAll(/\s+/g, " ")} LOOP PERFORM create_distributed_function(v_name, ${how}); END LOOP; END $functions$`;
}

/**
 * Gives whether the server passes the statements of this schema on to others; asked of a database with the extension of
 * Citus only. Whoever may change the schema has its functions distributed, if they are not.
 * @throws {ThroughlineError} STORE_UNSUPPORTED
 */
export async function readyDistribution(place: MigrationPlace, layout: Layout, migrate: boolean): Promise<boolean> {
  const { pool, schema, schemaName } = place;
  const ask = `SELECT ${isDistributedTable(schema)} AS is_distributed, ARRAY(${undistributed(schema)})::text[] AS missing`;
  const [row] = await pool.run(ask, [], { isRead: true });
  if (row?.["is_distributed"] !== true) return false;
  const missing = row["missing"] as readonly string[];
  if (missing.length === 0) return true;
  const statement = distributeFunctions(schema, layout);
  if (!migrate)
    throw new ThroughlineError("STORE_UNSUPPORTED", `Functions of the schema ${schemaName} are not distributed.`, {
      outcome: "not-applied",
      details: { schema: schemaName, functions: missing },
      remedy: `Open the store once as the owner of its tables, without migrate: false, or run at the coordinator: ${statement};`,
    });
  await pool.transaction(async (run) => {
    await takeMigrationLock(run);
    await run(statement);
  });
  return true;
}
