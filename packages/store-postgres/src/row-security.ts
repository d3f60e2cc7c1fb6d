/**
 * Row-level security by agent. A role sees the sessions of the agents that `agent_roles` gives it, and their records; the
 * owner of the tables, who migrates, sees everything. It hangs on the role and on nothing a session could set, so that it
 * holds behind a pooler in transaction mode, with a pool for each role.
 */
export function rowSecurity(schema: string): string {
  const visible = `EXISTS (SELECT FROM ${schema}.agent_roles a WHERE a.role_name = current_user AND a.agent_id = agent_id_of)`;
  const ownAgents = visible.replace("agent_id_of", "agents_or_sessions.agent_id");
  const policies = ["agents", "sessions"].map((table) =>
    policy(schema, table, ownAgents.replace("agents_or_sessions", table)),
  );
  // Sessions are hidden from this look-up by their own policy; shared records belong to the forks, too.
  const hanging = ["records", "payloads", "keyed_appends", "search_documents", "search_positions"].map((table) =>
    policy(
      schema,
      table,
      `EXISTS (SELECT FROM ${schema}.sessions s WHERE s.session_no = ${table}.session_no)
       OR EXISTS (SELECT FROM ${schema}.sessions s WHERE s.base_nos @> ARRAY[${table}.session_no])`,
    ),
  );
  return `
CREATE TABLE IF NOT EXISTS ${schema}.agent_roles (
  role_name name NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (role_name, agent_id)
);
${[...policies, ...hanging].join("\n")}`;
}

function policy(schema: string, table: string, condition: string): string {
  return `
ALTER TABLE ${schema}.${table} ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS throughline_agent ON ${schema}.${table};
CREATE POLICY throughline_agent ON ${schema}.${table} USING (${condition}) WITH CHECK (${condition});`;
}
