import {
  dropPolicies,
  mostExact,
  policy,
  samplesRemoved,
  secureTables,
  soundBases,
  soundFile,
  soundSession,
  statePolicies,
} from "./policy-parts.ts";
import { tenantTables, vectorTables } from "./table-parts.ts";

/**
 * Returns the policies of the tenant layout. Every row has its tenant, and each tenant has a role of the server, `tl_`
 * and the tenant's number. A role with the rights of that role serves the tenant. Therefore a policy reads no table,
 * and Citus can apply it on each node. A tenant is computed from a namespace and an agent. Tables that hold both are
 * checked to name the right tenant.
 */
export function tenantPolicies(schema: string): string {
  const isOwn = `${schema}.serves_tenant_1(tenant)`;
  const isNamed = `tenant = ${schema}.tenant_of_1(namespace, agent_id)`;
  const isSound = soundSession(`${schema}.sound_bases_1(base_nos, base_to_seqs, base_ids)`);
  const checks: Readonly<Record<string, string>> = {
    agents: `${isOwn} AND folded_id = lower(agent_id) AND ${isNamed}`,
    // A number that exists in another tenant does no harm, because no statement looks for a number without its tenant.
    sessions: `${isOwn} AND ${isNamed} AND session_no > 0 AND ${isSound}`,
    purged_sources: `${isOwn} AND ${isNamed}`,
    files: `${isOwn} AND ${isNamed} AND ${soundFile}`,
    file_references: `${isOwn} AND ${isNamed}`,
    vector_sets: `${isOwn} AND ${isNamed}`,
    vectors: `${isOwn} AND ${isNamed}`,
  };
  return `
${secureTables(schema)}
${dropPolicies(schema)}
${samplesRemoved(schema)}
${ownTenants(schema)}
${[...tenantTables, ...vectorTables].map((table) => policy(schema, table, "ALL", isOwn, checks[table])).join("\n")}
${statePolicies(schema)}`;
}

/**
 * Creates `tenant_of_1`, which computes the tenant as `tenantOf` does, and `role_of_1`, which returns its role.
 * `serves_tenant_1` tests whether the calling role serves a tenant. `sound_bases_1` checks the arrays of a fork.
 *
 * The condition of a policy must run before every operator of a statement, so its cost is the lowest. PostgreSQL never
 * inlines a PL/pgSQL function. It resolves names in the body at run time in the caller's path, so each name states its
 * schema.
 */
function ownTenants(schema: string): string {
  return `
CREATE OR REPLACE FUNCTION ${schema}.tenant_of_1(p_namespace text, p_agent_id text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('x' || encode(substring(sha256(convert_to(p_namespace, 'UTF8') || '\\x00'::bytea
  || convert_to(lower(p_agent_id COLLATE "C"), 'UTF8')) FROM 1 FOR 8), 'hex'))::bit(64)::bigint;
CREATE OR REPLACE FUNCTION ${schema}.role_of_1(p_namespace text, p_agent_id text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 'tl_' || ${schema}.tenant_of_1(p_namespace, p_agent_id);
CREATE OR REPLACE FUNCTION ${schema}.serves_tenant_1(p_tenant bigint) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY INVOKER COST 0.0001 AS $serves$
BEGIN
  RETURN coalesce(pg_catalog.pg_has_role(pg_catalog.to_regrole(
    pg_catalog.concat('"tl_', p_tenant, '"'))::pg_catalog.oid, 'USAGE'), false);
END $serves$;
CREATE OR REPLACE FUNCTION ${schema}.sound_bases_1(p_bases bigint[], p_to_seqs bigint[], p_ids text[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ${soundBases}
  AND NOT EXISTS (SELECT FROM unnest(p_bases, p_to_seqs, p_ids) AS b (no, to_seq, id)
    WHERE b.no IS NULL OR b.id IS NULL OR b.to_seq IS NULL OR b.to_seq NOT BETWEEN 0 AND ${mostExact});`;
}
