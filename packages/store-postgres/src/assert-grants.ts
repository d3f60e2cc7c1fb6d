import { ThroughlineError } from "@throughline/core";
import type { LayoutName } from "./layout.ts";
import type { DatabaseRow } from "./row-values.ts";
import type { MigrationPlace } from "./migration-place.ts";

/** Row security does not limit these rights on a table. */
const unboundRights = "'TRUNCATE', 'TRIGGER', 'REFERENCES'";

/**
 * Tests whether policies bind a role: it is no superuser, has no BYPASSRLS, and is no member of the owner's role. A
 * null row stands for PUBLIC. `i` is the row of `store_info` in `pg_class`.
 */
function isBound(role: string): string {
  return `${role}.oid IS NULL OR NOT (${role}.rolsuper OR ${role}.rolbypassrls OR ${role}.rolname = 'pg_database_owner'
    OR pg_has_role(${role}.oid, i.relowner, 'MEMBER'))`;
}

/**
 * Refuses a store if a role has rights that row security does not limit, or has left code that other roles run. Either
 * lets a role reach the rows of other agents.
 * @throws {ThroughlineError} STORE_UNSUPPORTED
 */
export async function assertGrants({ pool, schema, schemaName }: MigrationPlace, layout: LayoutName): Promise<void> {
  const [grants, code, makers] = await pool.transaction(async (run) => [
    await run(`SELECT DISTINCT coalesce(quote_ident(r.rolname), 'PUBLIC') AS role, a.privilege_type AS what
      FROM pg_class i JOIN pg_namespace n ON n.oid = i.relnamespace
      CROSS JOIN LATERAL (
        SELECT x.grantee, x.privilege_type FROM aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) x
          WHERE x.privilege_type = 'CREATE'
        UNION ALL
        SELECT x.grantee, x.privilege_type FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) x
          WHERE c.relnamespace = n.oid AND c.relowner = i.relowner AND x.privilege_type IN (${unboundRights})
      ) a LEFT JOIN pg_roles r ON r.oid = a.grantee
      WHERE i.oid = '${schema}.store_info'::regclass AND (${isBound("r")}) ORDER BY 1, 2`),
    await run(`SELECT quote_ident(r.rolname) AS role, o.what FROM pg_class i
      CROSS JOIN LATERAL (
        SELECT p.proowner AS owner, 'FUNCTION ' || p.oid::regprocedure AS what
          FROM pg_proc p WHERE p.pronamespace = i.relnamespace
        UNION ALL
        SELECT p.proowner, 'TRIGGER ' || quote_ident(t.tgname) || ' ON ' || t.tgrelid::regclass
          FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_class c ON c.oid = t.tgrelid
          WHERE NOT t.tgisinternal AND c.relnamespace = i.relnamespace
      ) o JOIN pg_roles r ON r.oid = o.owner
      WHERE i.oid = '${schema}.store_info'::regclass AND (${isBound("r")}) ORDER BY o.what DESC`),
    // A role with CREATEROLE can create the role of a tenant, or grant it to itself.
    layout === "plain"
      ? []
      : await run(`SELECT quote_ident(r.rolname) AS role FROM pg_class i CROSS JOIN pg_roles r
      WHERE i.oid = '${schema}.store_info'::regclass AND r.rolcreaterole AND (${isBound("r")})
        AND has_schema_privilege(r.oid, i.relnamespace, 'USAGE') ORDER BY 1`),
  ]);
  const refusal = (message: string, found: readonly DatabaseRow[], remedy: string): ThroughlineError =>
    new ThroughlineError("STORE_UNSUPPORTED", message, {
      outcome: "not-applied",
      details: { schema: schemaName, found },
      remedy,
    });
  const named = (rows: readonly DatabaseRow[], column: string): string =>
    [...new Set(rows.map((row) => String(row[column])))].join(", ");
  if (grants.length > 0)
    throw refusal(
      `Row security of the schema ${schemaName} does not bind ${named(grants, "role")}, which has the right to ${named(grants, "what")}.`,
      grants,
      `REVOKE TRUNCATE, TRIGGER, REFERENCES ON ALL TABLES IN SCHEMA ${schema} FROM ${named(grants, "role")}; REVOKE CREATE ON SCHEMA ${schema} FROM ${named(grants, "role")};`,
    );
  if (makers.length > 0)
    throw refusal(
      `Row security of the schema ${schemaName} does not bind ${named(makers, "role")}, which may make roles and so serve any tenant.`,
      makers,
      makers.map((row) => `ALTER ROLE ${String(row["role"])} NOCREATEROLE;`).join(" "),
    );
  if (code.length > 0)
    throw refusal(
      `The schema ${schemaName} holds code of ${named(code, "role")} that other roles run: ${named(code, "what")}.`,
      code,
      code.map((row) => `DROP ${String(row["what"])};`).join(" "),
    );
}
