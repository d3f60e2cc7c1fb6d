export const mostExact: number = Number.MAX_SAFE_INTEGER;

/** Limits the depth of forks of forks, because programs read these arrays whole. */
const mostBases = 10_000;

/** Closes the tables that a step has just created, if the store has row security. */
export function secureNewTables(schema: string): string {
  return secureTables(schema, `IF NOT (${isSecured(schema)}) THEN RETURN; END IF;`);
}

/**
 * Turns on row security on every table of the store, partitions included. A table without a policy then denies every
 * row. Tables of other owners in the schema stay as they are.
 */
export function secureTables(schema: string, unless = ""): string {
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

export function isSecured(schema: string): string {
  return `SELECT relrowsecurity FROM pg_class WHERE oid = '${schema}.sessions'::regclass`;
}

/** Finds the tables of the store without row security. */
export function unsecuredTables(schema: string): string {
  return `SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_class i ON i.relowner = c.relowner
    WHERE i.oid = '${schema}.store_info'::regclass AND c.relnamespace = i.relnamespace
      AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity`;
}

/**
 * Drops the policies of this package, so that they can be created again. Policies of other programs have other names
 * and stay.
 */
export function dropPolicies(schema: string): string {
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

/** No index or plan needs statistics of these columns, which hold contents. */
const contents: Readonly<Record<string, readonly string[]>> = {
  sessions: ["turn_id", "turn_owner", "entry_names", "entry_values", "entry_coded"],
  records: ["rest", "coded", "source"],
  payloads: ["content"],
  keyed_appends: ["digest", "turn_id", "turn_owner"],
  partials: ["turn_id", "content", "coded"],
  search_documents: ["words"],
  files: ["upload", "file_id", "bytes", "stored_at_ms"],
  file_chunks: ["upload", "content"],
  file_references: ["file_id"],
};

/** The second step of the schema adds these. */
const vectorContents: typeof contents = { vectors: ["scale", "code", "numbers"] };

/** Finds the columns that must have no samples but have some. */
export function unsampledColumns(schema: string): string {
  return `SELECT DISTINCT coalesce(h.inhparent, c.oid)::regclass AS on_table, quote_ident(a.attname) AS name,
      format_type(a.atttypid, a.atttypmod) AS type, t.schemaname, t.tablename, t.attname, t.inherited
    FROM pg_class i JOIN pg_class c ON c.relnamespace = i.relnamespace AND c.relowner = i.relowner
    JOIN pg_attribute a ON a.attrelid = c.oid
    JOIN pg_stats t ON t.schemaname = c.relnamespace::regnamespace::name AND t.tablename = c.relname AND t.attname = a.attname
    LEFT JOIN pg_inherits h ON h.inhrelid = c.oid
    WHERE i.oid = '${schema}.store_info'::regclass AND c.relkind IN ('r', 'p') AND a.attstattarget = 0`;
}

/**
 * Stops PostgreSQL from taking samples of contents. It estimates row counts from samples, keeps them after the rows are
 * deleted, and shows its estimates to every role.
 */
export function contentsUnsampled(schema: string): string {
  const changes = Object.entries(contents).map(([table, columns]) => {
    const each = columns.map((name) => `ALTER COLUMN ${name} SET STATISTICS 0`);
    return `ALTER TABLE ${schema}.${table} ${each.join(", ")};`;
  });
  return changes.join("\n");
}

/** Finds the columns with contents that PostgreSQL may take samples of. */
function sampledColumns(schema: string): string {
  const named = Object.entries({ ...contents, ...vectorContents }).flatMap(([table, columns]) =>
    columns.map((column) => `('${schema}.${table}'::regclass, '${column}'::name)`),
  );
  return `SELECT a.attrelid::regclass AS on_table, a.attname AS name FROM (VALUES ${named.join(", ")}) AS c (of_table, name)
    LEFT JOIN pg_inherits h ON h.inhparent = c.of_table
    JOIN pg_attribute a ON a.attrelid IN (c.of_table, h.inhrelid) AND a.attname = c.name
    WHERE a.attstattarget IS DISTINCT FROM 0`;
}

/**
 * Stops samples of contents, and removes those that a server took while an administrator allowed it. PostgreSQL drops
 * the samples of a column that gets its own type again, and rewrites no row. It refuses that for a column of a view.
 * Version 18 has a function for such columns.
 */
export function samplesRemoved(schema: string): string {
  return `DO $unsample$
DECLARE
  v_column record;
BEGIN
  FOR v_column IN ${sampledColumns(schema)} LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', v_column.on_table, v_column.name);
  END LOOP;
  FOR v_column IN ${unsampledColumns(schema)} LOOP
    BEGIN
      EXECUTE format('ALTER TABLE %s ALTER COLUMN %s TYPE %s', v_column.on_table, v_column.name, v_column.type);
    EXCEPTION WHEN feature_not_supported THEN
      BEGIN
        EXECUTE format('SELECT pg_catalog.pg_clear_attribute_stats(%L, %L, %L, %L::boolean)',
          v_column.schemaname, v_column.tablename, v_column.attname, v_column.inherited);
      EXCEPTION WHEN undefined_function THEN NULL;
      END;
    END;
  END LOOP;
END $unsample$;`;
}

/**
 * Returns conditions on the values that a role may write to a session, because invalid ones would stop programs that
 * serve all agents.
 */
export function soundSession(shares: string): string {
  const numbers = ["last_seq", "revision", "message_count", "messages_ever", "keyed_next", "vector_removals"]
    .map((column) => `${column} BETWEEN 0 AND ${mostExact}`)
    .concat(["created_at_ms", "appended_at_ms", "updated_at_ms"].map((column) => `abs(${column}) <= ${mostExact}`));
  return `${numbers.join(" AND ")}
       AND (entry_coded IS NOT NULL OR entry_names IS NOT NULL AND entry_values IS NOT NULL)
       AND (base_nos IS NULL OR ${shares})`;
}

/** Returns conditions on the numbers that a role may write to a file. */
export const soundFile: string = `coalesce(bytes BETWEEN 0 AND ${mostExact}, file_id IS NULL) AND abs(stored_at_ms) <= ${mostExact}`;

/**
 * Requires the arrays of a fork, under their parameter names, to have equal lengths within the limit that a program
 * reads.
 */
export const soundBases: string = `coalesce(array_ndims(p_bases) = 1 AND array_ndims(p_to_seqs) = 1 AND cardinality(p_bases) <= ${mostBases}
    AND cardinality(p_bases) = cardinality(p_to_seqs) AND cardinality(p_bases) = cardinality(p_ids), false)`;

/** These rows belong to no agent, so every role may read them. */
export function statePolicies(schema: string): string {
  return [
    policy(schema, "store_info", "SELECT", "true"),
    policy(schema, "search_state", "SELECT", "true"),
    policy(schema, "search_state", "UPDATE", "true", "caught_up_slot = 0"),
  ].join("\n");
}

type Command = "ALL" | "SELECT" | "INSERT" | "UPDATE" | "DELETE";

/** Returns a policy. `visible` decides which rows a statement finds, and `writable` which rows it may leave behind. */
export function policy(
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
