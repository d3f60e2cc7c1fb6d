import { createHash } from "node:crypto";
import type { RunStatement } from "./connection-pool.ts";
import { takeMigrationLock, type MigrationPlace } from "./migration-place.ts";
import { runStatements } from "./split-statements.ts";

/**
 * Row-level security by agent. A role reads and writes the sessions of the agents that `agent_roles` gives it, and
 * their records. The owner of the tables, who migrates, reads and writes everything. The policies look at
 * `current_user` and at no session setting, so they hold behind a pooler in transaction mode, with a pool for each
 * role. They also hold against a role that sends its own SQL. A role may write the columns that decide who sees a
 * record, so those values are checked.
 *
 * PostgreSQL applies the policies of the table that a statement names, and of no other. A statement that names a
 * partition gets past the policies of its parent. So every table in the schema has row security, and a table without a
 * policy of its own shows no row and takes none.
 */
export function rowSecurity(schema: string): string {
  const isOwn = `${schema}.serves_1(agent_id)`;
  // The policy of `sessions` says this, too; an index finds it.
  const isServed = `s.agent_id IN (SELECT a.agent_id FROM ${schema}.agent_roles a)`;
  const hanging = [
    ...["records", "payloads", "keyed_appends", "partials"].map((table) =>
      policy(schema, table, "ALL", `${schema}.holds_1(session_no)`),
    ),
    // No operator that PostgreSQL lets run before a policy looks into words. A search meets many rows: the numbers are hashed once.
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
  // What a role writes here is read by programs that serve all agents: it must not stop them.
  const numbers = ["last_seq", "revision", "message_count", "messages_ever", "keyed_next"]
    .map((column) => `${column} BETWEEN 0 AND ${mostExact}`)
    .concat(["created_at_ms", "appended_at_ms", "updated_at_ms"].map((column) => `abs(${column}) <= ${mostExact}`));
  const isSound = `${numbers.join(" AND ")}
       AND (entry_coded IS NOT NULL OR entry_names IS NOT NULL AND entry_values IS NOT NULL)
       AND (base_nos IS NULL OR ${schema}.shares_own_1(base_nos, base_to_seqs, base_ids, agent_id))`;
  return `
CREATE TABLE IF NOT EXISTS ${schema}.agent_roles (
  role_name name NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (role_name, agent_id)
);
ALTER TABLE ${schema}.leases ADD COLUMN IF NOT EXISTS role_name name NOT NULL DEFAULT current_user;
${secureTables(schema)}
${dropPolicies(schema)}
${contentsUnsampled(schema)}
${ownAgents(schema)}
${ownSessions(schema)}
${policy(schema, "agents", "ALL", isOwn, `folded_id = lower(agent_id) AND ${isOwn}`)}
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
${policy(schema, "leases", "ALL", "role_name = current_user")}
${policy(schema, "agent_roles", "SELECT", "role_name = current_user")}
${policy(schema, "store_info", "SELECT", "true")}
${policy(schema, "search_state", "SELECT", "true")}
${policy(schema, "search_state", "UPDATE", "true", "caught_up_slot = 0")}
DROP FUNCTION IF EXISTS ${schema}.may_hold_1(bigint, bigint[], text);`;
}

/** Where the store has row security already: on every table, also on those that a step of the schema has just made. */
export function secureNewTables(schema: string): string {
  return secureTables(schema, `IF NOT (${isSecured(schema)}) THEN RETURN; END IF;`);
}

/**
 * Row security on every table of the store, partitions included. A table without a policy denies every row. Tables of
 * other owners in the schema are not the store's and stay as they are.
 */
function secureTables(schema: string, unless = ""): string {
  return `DO $secure$
DECLARE
  v_table regclass;
BEGIN
  ${unless}
  FOR v_table IN ${unsecuredTables(schema)} LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', v_table);
  END LOOP;
END $secure$;`;
}

/** Whether some version secured the store: the first ones left no digest. */
function isSecured(schema: string): string {
  return `SELECT relrowsecurity FROM pg_class WHERE oid = '${schema}.sessions'::regclass`;
}

/** The tables of the store that row security does not protect yet. */
function unsecuredTables(schema: string): string {
  return `SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_class i ON i.relowner = c.relowner
    WHERE i.oid = '${schema}.store_info'::regclass AND c.relnamespace = i.relnamespace
      AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity`;
}

/** Policies of earlier versions. Policies that somebody else added have other names and stay. */
function dropPolicies(schema: string): string {
  return `DO $drop$
DECLARE
  v_policy record;
BEGIN
  FOR v_policy IN SELECT p.polname AS name, p.polrelid::regclass AS on_table FROM pg_policy p
    JOIN pg_class c ON c.oid = p.polrelid JOIN pg_class i ON i.relnamespace = c.relnamespace
    WHERE i.oid = '${schema}.store_info'::regclass AND p.polname LIKE 'throughline\\_%' LOOP
    EXECUTE format('DROP POLICY %I ON %s', v_policy.name, v_policy.on_table);
  END LOOP;
END $drop$;`;
}

/** The policy of `sessions` applies here, too. A record that a fork shares belongs to the fork as well. */
function isHeld(schema: string, number: string): string {
  return `EXISTS (SELECT FROM ${schema}.sessions s WHERE s.session_no = ${number})
    OR EXISTS (SELECT FROM ${schema}.sessions s WHERE s.base_nos IS NOT NULL AND s.base_nos @> ARRAY[${number}])`;
}

/**
 * Whether the role that asks serves an agent, and whether it holds the records of a session number.
 *
 * PostgreSQL evaluates the conditions of a statement in the order of their cost. Its own leakproof operators run before
 * a more expensive policy. EXPLAIN ANALYZE then shows whether the policy was reached, and with it the outcome of any
 * comparison with a hidden row. So a policy on columns with contents is a function whose cost is below that of every
 * operator. PostgreSQL cannot inline it, because its body has a subquery.
 */
function ownAgents(schema: string): string {
  const head = "RETURNS boolean LANGUAGE sql STABLE SECURITY INVOKER COST 0.0001";
  return `
CREATE OR REPLACE FUNCTION ${schema}.serves_1(p_agent_id text) ${head}
RETURN EXISTS (SELECT FROM ${schema}.agent_roles a WHERE a.role_name = current_user AND a.agent_id = p_agent_id);
CREATE OR REPLACE FUNCTION ${schema}.holds_1(p_number bigint) ${head}
RETURN ${isHeld(schema, "p_number")};`;
}

/** Columns with contents, none of which a plan depends on. */
const contents: Readonly<Record<string, readonly string[]>> = {
  sessions: ["turn_id", "turn_owner", "entry_names", "entry_values", "entry_coded"],
  records: ["rest", "coded", "source"],
  payloads: ["content"],
  keyed_appends: ["digest", "turn_id", "turn_owner"],
  partials: ["turn_id", "content", "coded"],
  search_documents: ["words"],
};

/**
 * PostgreSQL estimates how many rows a condition finds from samples of all rows, and shows its estimate to every role.
 * So no samples of contents are taken. Existing samples are removed when a column gets its own type again, which
 * rewrites nothing. PostgreSQL refuses that for a column of a view, whose owner shows it to others anyway.
 */
function contentsUnsampled(schema: string): string {
  const changes = Object.entries(contents).map(([table, columns]) => {
    const each = columns.map((name) => `ALTER COLUMN ${name} SET STATISTICS 0`);
    return `ALTER TABLE ${schema}.${table} ${each.join(", ")};`;
  });
  return `${changes.join("\n")}
DO $unsample$
DECLARE
  v_column record;
BEGIN
  FOR v_column IN SELECT DISTINCT coalesce(h.inhparent, c.oid)::regclass AS on_table, quote_ident(a.attname) AS name,
      format_type(a.atttypid, a.atttypmod) AS type
    FROM pg_class i JOIN pg_class c ON c.relnamespace = i.relnamespace AND c.relowner = i.relowner
    JOIN pg_attribute a ON a.attrelid = c.oid
    JOIN pg_stats t ON t.schemaname = c.relnamespace::regnamespace::name AND t.tablename = c.relname AND t.attname = a.attname
    LEFT JOIN pg_inherits h ON h.inhrelid = c.oid
    WHERE i.oid = '${schema}.store_info'::regclass AND c.relkind IN ('r', 'p') AND a.attstattarget = 0 LOOP
    BEGIN
      EXECUTE format('ALTER TABLE %s ALTER COLUMN %s TYPE %s', v_column.on_table, v_column.name, v_column.type);
    EXCEPTION WHEN feature_not_supported THEN NULL;
    END;
  END LOOP;
END $unsample$;`;
}

/**
 * Whether a session number belongs to the calling role, and whether a session of the agent may share these records. It
 * may share those of sessions of the same agent, and those that a fork of the same agent shares already. Both run with
 * the rights of the role that asks, so they answer nothing that it could not read itself. They are functions because a
 * policy of `sessions` cannot read `sessions`. The statement's snapshot holds the rows as they were before it.
 */
function ownSessions(schema: string): string {
  const head = "RETURNS boolean LANGUAGE sql STABLE SECURITY INVOKER SET search_path = pg_catalog, pg_temp";
  return `
CREATE OR REPLACE FUNCTION ${schema}.is_own_1(p_number bigint) ${head} AS $own$
  SELECT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.session_no = p_number)
$own$;
CREATE OR REPLACE FUNCTION ${schema}.shares_own_1(p_bases bigint[], p_to_seqs bigint[], p_ids text[], p_agent_id text)
${head} AS $own$
  SELECT coalesce(array_ndims(p_bases) = 1 AND array_ndims(p_to_seqs) = 1 AND cardinality(p_bases) <= ${mostBases}
    AND cardinality(p_bases) = cardinality(p_to_seqs) AND cardinality(p_bases) = cardinality(p_ids), false)
  AND NOT EXISTS (SELECT FROM unnest(p_bases, p_to_seqs) AS b (no, to_seq)
    WHERE b.to_seq IS NULL OR b.to_seq NOT BETWEEN 0 AND ${mostExact} OR NOT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.session_no = b.no AND s.agent_id = p_agent_id)
      AND NOT EXISTS (SELECT FROM ${schema}.sessions s WHERE s.base_nos @> ARRAY[b.no] AND s.agent_id = p_agent_id))
$own$;`;
}

/** The largest number that a program reads exactly. */
const mostExact = Number.MAX_SAFE_INTEGER;

/** Forks of forks, one behind the other. */
const mostBases = 10_000;

type Command = "ALL" | "SELECT" | "INSERT" | "UPDATE" | "DELETE";

/** `visible` decides which rows a statement finds, `writable` which rows it may leave behind. */
function policy(
  schema: string,
  table: string,
  command: Command,
  visible: string | null,
  writable: string | null = command === "ALL" || command === "UPDATE" ? visible : null,
): string {
  const rules = [
    ...(visible === null ? [] : [`USING (${visible})`]),
    ...(writable === null ? [] : [`WITH CHECK (${writable})`]),
  ];
  return `CREATE POLICY throughline_${command.toLowerCase()} ON ${schema}.${table} FOR ${command} ${rules.join(" ")};`;
}

/** The row of `store_info` that holds the digest of the policies in force. */
const rowSecurityName = "row_security";

/** How the store stands towards the policies of this version. */
export interface SecurityState {
  /** Some version secured it. */
  readonly isSecured: boolean;
  /** This version's policies are in force, and every table has row security. */
  readonly isCurrent: boolean;
  /** The role that asks may change the tables. */
  readonly isOwner: boolean;
}

export async function readSecurity(
  { schema }: Pick<MigrationPlace, "schema">,
  run: RunStatement,
): Promise<SecurityState> {
  const [row] = await run(
    `SELECT (SELECT value FROM ${schema}.store_info WHERE name = '${rowSecurityName}') AS digest,
       (${isSecured(schema)}) AS is_secured, EXISTS (${unsecuredTables(schema)}) AS is_open,
       (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = '${schema}.store_info'::regclass) AS is_owner`,
  );
  return {
    isSecured: row?.["is_secured"] === true,
    isCurrent: row?.["digest"] === digestOf(rowSecurity(schema)) && row?.["is_open"] === false,
    isOwner: row?.["is_owner"] === true,
  };
}

/**
 * Sets the policies up unless they are in force: each is a lock that waits for every statement on its table. A store that
 * an earlier version secured gets this version's policies from the next owner who opens it, asked for or not.
 */
export async function applyRowSecurity(place: MigrationPlace, isAsked: boolean): Promise<void> {
  const isDue = ({ isSecured, isCurrent, isOwner }: SecurityState): boolean =>
    !isCurrent && (isAsked || (isSecured && isOwner));
  if (!isDue(await place.pool.transaction((run) => readSecurity(place, run)))) return;
  await place.pool.transaction(async (run) => {
    await takeMigrationLock(run);
    if (!isDue(await readSecurity(place, run))) return;
    const sql = rowSecurity(place.schema);
    await runStatements(run, sql);
    await run(
      `INSERT INTO ${place.schema}.store_info (name, value) VALUES ('${rowSecurityName}', $1)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [digestOf(sql)],
    );
  });
}

function digestOf(sql: string): string {
  return createHash("sha256").update(sql).digest("hex");
}
