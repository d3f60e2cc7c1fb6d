import { createHash } from "node:crypto";
import type { RunStatement } from "./connection-pool.ts";
import { agentPolicies } from "./agent-policies.ts";
import type { LayoutName } from "./layout.ts";
import { takeMigrationLock, type MigrationPlace } from "./migration-place.ts";
import { isSecured, unsecuredTables } from "./policy-parts.ts";
import { runStatements } from "./split-statements.ts";
import { tenantPolicies } from "./tenant-policies.ts";

/**
 * Returns the policies of row-level security by agent. A role reads and writes the sessions of the agents that it
 * serves, and their records. The owner of the tables reads and writes everything. The policies use `current_user` and
 * no session setting, so they hold behind a pooler in transaction mode with a pool for each role. They also hold
 * against SQL that a role sends itself. A role may write the columns that decide who sees a record, so the policies
 * check those values.
 *
 * PostgreSQL applies only the policies of the table that a statement names. A statement that names a partition bypasses
 * the policies of its parent. Therefore every table in the schema has row security, and a table without a policy shows
 * no row and accepts none.
 */
export function rowSecurity(schema: string, layout: LayoutName): string {
  return layout === "plain" ? agentPolicies(schema) : tenantPolicies(schema);
}

/** This row of `store_info` holds the digest of the policies in force. */
const rowSecurityName = "row_security";

export interface SecurityState {
  /** States whether any version has secured the store. */
  readonly isSecured: boolean;
  /** States whether this version's policies are in force and every table has row security. */
  readonly isCurrent: boolean;
  /** States whether the calling role may change the tables. */
  readonly isOwner: boolean;
}

export async function readSecurity(schema: string, layout: LayoutName, run: RunStatement): Promise<SecurityState> {
  const [row] = await run(
    `SELECT (SELECT value FROM ${schema}.store_info WHERE name = '${rowSecurityName}') AS digest,
       (${isSecured(schema)}) AS is_secured, EXISTS (${unsecuredTables(schema)}) AS is_open,
       (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = '${schema}.store_info'::regclass) AS is_owner`,
  );
  return {
    isSecured: row?.["is_secured"] === true,
    isCurrent: row?.["digest"] === digestOf(rowSecurity(schema, layout)) && row?.["is_open"] === false,
    isOwner: row?.["is_owner"] === true,
  };
}

/**
 * Creates the policies unless they are in force, because each one takes a lock that waits for every statement on its
 * table. An owner that opens a secured store replaces the policies of another version, whether row security was
 * requested or not.
 */
export async function applyRowSecurity(
  { pool, schema }: MigrationPlace,
  layout: LayoutName,
  { isAsked, hasCitus }: { readonly isAsked: boolean; readonly hasCitus: boolean },
): Promise<void> {
  const isDue = ({ isSecured, isCurrent, isOwner }: SecurityState): boolean =>
    !isCurrent && (isAsked || (isSecured && isOwner));
  if (!isDue(await pool.transaction((run) => readSecurity(schema, layout, run)))) return;
  await pool.transaction(async (run) => {
    await takeMigrationLock(run);
    if (!isDue(await readSecurity(schema, layout, run))) return;
    const sql = rowSecurity(schema, layout);
    // Citus else changes the shards over several connections, and refuses a function in the same transaction.
    if (hasCitus) await run("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'");
    await runStatements(run, sql);
    await run(
      `INSERT INTO ${schema}.store_info (name, value) VALUES ('${rowSecurityName}', $1)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [digestOf(sql)],
    );
  });
}

function digestOf(sql: string): string {
  return createHash("sha256").update(sql).digest("hex");
}
