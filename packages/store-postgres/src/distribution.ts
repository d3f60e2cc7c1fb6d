import { ThroughlineError } from "@throughline/core";
import type { Layout } from "./layout.ts";
import { takeMigrationLock, type MigrationPlace } from "./migration-place.ts";

/**
 * Citus must run these functions on the node of the rows, because it cannot pass on the statements inside a function
 * that runs on another node.
 */
const functions = ["append_1", "save_1", "read_page_1", "read_window_1"];

/**
 * Tests whether Citus spreads the sessions over nodes, or keeps them on one node to which others pass statements on.
 */
const isDistributedTable = (schema: string): string =>
  `EXISTS (SELECT FROM pg_catalog.pg_dist_partition d WHERE d.logicalrelid = '${schema}.sessions'::regclass)`;

/** Finds the store's functions that Citus does not yet pass on. */
const undistributed = (schema: string): string => `SELECT p.oid::regprocedure AS name FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_class i ON i.relnamespace = p.pronamespace
  WHERE i.oid = '${schema}.store_info'::regclass AND p.proname IN (${functions.map((name) => `'${name}'`).join(", ")})
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_dist_object o WHERE o.classid = 'pg_catalog.pg_proc'::regclass
      AND o.objid = p.oid AND o.colocationid IS NOT NULL)`;

/**
 * Returns the statement that makes Citus run the functions on the node of their tenant or schema. Citus accepts one
 * function at a time.
 */
function distributeFunctions(schema: string, { name }: Layout): string {
  const how =
    name === "tenant" ? `'p_tenant', colocate_with => '${schema}.agents'` : `colocate_with => '${schema}.sessions'`;
  return `DO $functions$ DECLARE v_name regprocedure; BEGIN FOR v_name IN ${undistributed(schema).replaceAll(/\s+/g, " ")} LOOP PERFORM create_distributed_function(v_name, ${how}); END LOOP; END $functions$`;
}

/**
 * Returns whether the server passes the statements of this schema on to other nodes. It needs a database with the
 * extension of Citus. With `migrate`, functions that are not distributed yet are distributed.
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
