import { createHash } from "node:crypto";
import { takeMigrationLock, type MigrationPlace } from "./migrate-schema.ts";

/**
 * Row-level security by agent. A role sees the sessions of the agents that `agent_roles` gives it, and their records; the
 * owner of the tables, who migrates, sees everything. It hangs on the role and on nothing a session could set, so that it
 * holds behind a pooler in transaction mode, with a pool for each role. It also holds against a role that sends SQL of its
 * own: what decides who sees a record are columns that a role may write, so what it writes there is checked.
 */
export function rowSecurity(schema: string): string {
  const isOwn = (table: string): string =>
    `EXISTS (SELECT FROM ${schema}.agent_roles a WHERE a.role_name = current_user AND a.agent_id = ${table}.agent_id)`;
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
ALTER TABLE ${schema}.leases ADD COLUMN IF NOT EXISTS role_name name NOT NULL DEFAULT current_user;
${mayHold(schema)}
${policy(schema, "agents", isOwn("agents"), `folded_id = lower(agent_id) AND ${isOwn("agents")}`)}
${policy(
  schema,
  "sessions",
  isOwn("sessions"),
  `${isOwn("sessions")} AND ${schema}.may_hold_1(session_no, base_nos, agent_id)`,
)}
${hanging.join("\n")}
${policy(schema, "leases", "role_name = current_user")}
${policy(schema, "agent_roles", "role_name = current_user", "false")}
${policy(schema, "store_info", "true", "false")}
${policy(schema, "search_state", "true", "caught_up_slot = 0")}`;
}

/**
 * Whether a session of the agent may have this number and share these: no records that were never its agent's come with
 * them, and no number is taken that the sequence has yet to give out. It looks at all sessions, whoever asks, and tells
 * nothing of them but this.
 */
function mayHold(schema: string): string {
  return `
CREATE OR REPLACE FUNCTION ${schema}.may_hold_1(p_number bigint, p_bases bigint[], p_agent_id text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $hold$
  SELECT p_number <= (SELECT last_value FROM ${schema}.session_numbers)
    AND NOT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.base_nos @> ARRAY[p_number] AND s.agent_id <> p_agent_id)
    AND NOT EXISTS (SELECT FROM unnest(p_bases) AS b (no)
      WHERE NOT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.session_no = b.no AND s.agent_id = p_agent_id)
        AND NOT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.base_nos @> ARRAY[b.no] AND s.agent_id = p_agent_id))
$hold$;`;
}

function policy(schema: string, table: string, visible: string, writable: string = visible): string {
  return `
ALTER TABLE ${schema}.${table} ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS throughline_agent ON ${schema}.${table};
CREATE POLICY throughline_agent ON ${schema}.${table} USING (${visible}) WITH CHECK (${writable});`;
}

/** What `store_info` says under this name is the digest of the policies that are in force. */
export const rowSecurityName = "row_security";

/** Sets the policies up unless they are: each is a lock that waits for every statement on its table. */
export async function applyRowSecurity({ pool, schema }: MigrationPlace): Promise<void> {
  const sql = rowSecurity(schema);
  const digest = createHash("sha256").update(sql).digest("hex");
  const known = `SELECT FROM ${schema}.store_info WHERE name = '${rowSecurityName}' AND value = $1`;
  const found = await pool.run(known, [digest], { isRead: true });
  if (found.length > 0) return;
  await pool.transaction(async (run) => {
    await takeMigrationLock(run);
    const [applied] = await run(known, [digest]);
    if (applied !== undefined) return;
    await run(sql);
    await run(
      `INSERT INTO ${schema}.store_info (name, value) VALUES ('${rowSecurityName}', $1)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [digest],
    );
  });
}
