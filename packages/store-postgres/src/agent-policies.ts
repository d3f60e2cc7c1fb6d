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

/**
 * Returns the policies of the plain layout. The table `agent_roles` states which agents a role serves. A row belongs to
 * an agent through its session, so the policies look sessions up.
 */
export function agentPolicies(schema: string): string {
  const isOwn = `${schema}.serves_1(agent_id)`;
  // The policy of `sessions` contains the same condition. It is repeated here because an index can answer it.
  const isServed = `s.agent_id IN (SELECT a.agent_id FROM ${schema}.agent_roles a)`;
  const hanging = [
    ...["records", "payloads", "keyed_appends", "partials", "vector_progress", "vector_gaps"].map((table) =>
      policy(schema, table, "ALL", `${schema}.holds_1(session_no)`),
    ),
    // PostgreSQL runs no operator on words before a policy, so a plain condition is safe here. A search meets many
    // rows, and this form hashes the session numbers once.
    ...["search_documents", "search_positions"].map((table) =>
      policy(
        schema,
        table,
        "ALL",
        `session_no IN (SELECT s.session_no FROM ${schema}.sessions s WHERE ${isServed})
         OR session_no IN (SELECT unnest(s.base_nos) FROM ${schema}.sessions s WHERE s.base_nos IS NOT NULL AND ${isServed})`,
        `${schema}.holds_1(session_no)`,
      ),
    ),
  ];
  const isSound = soundSession(`${schema}.shares_own_1(base_nos, base_to_seqs, base_ids, agent_id)`);
  return `
CREATE TABLE IF NOT EXISTS ${schema}.agent_roles (
  role_name name NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (role_name, agent_id)
);
${secureTables(schema)}
${dropPolicies(schema)}
${samplesRemoved(schema)}
${ownAgents(schema)}
${ownSessions(schema)}
${policy(schema, "agents", "ALL", isOwn, `folded_id = lower(agent_id) AND ${isOwn}`)}
${policy(schema, "purged_sources", "ALL", isOwn)}
${policy(schema, "files", "ALL", isOwn, `${isOwn} AND ${soundFile}`)}
${policy(schema, "file_chunks", "ALL", `${schema}.holds_file_1(upload)`)}
${policy(schema, "file_references", "ALL", isOwn, `${isOwn} AND ${schema}.holds_1(session_no)`)}
${policy(schema, "vector_sets", "ALL", isOwn)}
${policy(schema, "vectors", "ALL", isOwn, `${isOwn} AND ${schema}.holds_1(session_no)`)}
${policy(schema, "sessions", "SELECT", isOwn)}
${policy(schema, "sessions", "DELETE", isOwn)}
${policy(
  schema,
  "sessions",
  "INSERT",
  null,
  `${isOwn} AND session_no = currval('${schema}.session_numbers') AND ${isSound}`,
)}
${policy(schema, "sessions", "UPDATE", isOwn, `${isOwn} AND ${schema}.is_own_1(session_no) AND ${isSound}`)}
${hanging.join("\n")}
${policy(schema, "agent_roles", "SELECT", "role_name = current_user")}
${statePolicies(schema)}`;
}

/** The policy of `sessions` limits these subqueries as well. A record that a fork shares belongs to the fork, too. */
function isHeld(schema: string, number: string): string {
  return `EXISTS (SELECT FROM ${schema}.sessions s WHERE s.session_no = ${number})
    OR EXISTS (SELECT FROM ${schema}.sessions s WHERE s.base_nos IS NOT NULL AND s.base_nos @> ARRAY[${number}])`;
}

/**
 * Creates `serves_1`, which tests whether the role serves an agent, and `holds_1`, which tests whether it may read the
 * records of a session number. `holds_file_1` tests the same of the chunks of a file.
 *
 * PostgreSQL evaluates the conditions of a statement in the order of their cost. Its own leakproof operators run before
 * a more expensive policy. EXPLAIN ANALYZE then shows whether the policy was reached, and with it the outcome of any
 * comparison with a hidden row. Therefore a policy on columns with contents is a function whose cost is below that of
 * every operator. PostgreSQL cannot inline it, because its body has a subquery.
 */
function ownAgents(schema: string): string {
  const head = "RETURNS boolean LANGUAGE sql STABLE SECURITY INVOKER COST 0.0001";
  return `
CREATE OR REPLACE FUNCTION ${schema}.serves_1(p_agent_id text) ${head}
RETURN EXISTS (SELECT FROM ${schema}.agent_roles a WHERE a.role_name = current_user AND a.agent_id = p_agent_id);
CREATE OR REPLACE FUNCTION ${schema}.holds_1(p_number bigint) ${head}
RETURN ${isHeld(schema, "p_number")};
CREATE OR REPLACE FUNCTION ${schema}.holds_file_1(p_upload text) ${head}
RETURN EXISTS (SELECT FROM ${schema}.files f WHERE f.upload = p_upload);`;
}

/**
 * Creates `is_own_1`, which tests whether a session number belongs to the calling role. Creates `shares_own_1`, which
 * tests whether a session of the agent may share these records. A session may share records of the same agent's
 * sessions, and records that a fork of the agent shares already. Both functions run with the rights of the caller, so
 * they reveal nothing that it could not read itself. They are functions because a policy of `sessions` cannot read
 * `sessions`. The snapshot of the statement holds the rows of the moment before it.
 */
function ownSessions(schema: string): string {
  const head = "RETURNS boolean LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp";
  return `
CREATE OR REPLACE FUNCTION ${schema}.is_own_1(p_number bigint) ${head} AS $own$
  SELECT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.session_no = p_number)
$own$;
CREATE OR REPLACE FUNCTION ${schema}.shares_own_1(p_bases bigint[], p_to_seqs bigint[], p_ids text[], p_agent_id text)
${head} AS $own$
  SELECT ${soundBases}
  AND NOT EXISTS (SELECT FROM unnest(p_bases, p_to_seqs) AS b (no, to_seq)
    WHERE b.to_seq IS NULL OR b.to_seq NOT BETWEEN 0 AND ${mostExact} OR NOT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.session_no = b.no AND s.agent_id = p_agent_id)
      AND NOT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.base_nos @> ARRAY[b.no] AND s.agent_id = p_agent_id))
$own$;`;
}
