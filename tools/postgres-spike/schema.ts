const partitions = 16;

/**
 * Three tables. `session_no` is the narrow number that records and keys hang on; the session id is for people.
 *
 * The session that is current under a key is one row that changes in place, also when a reset gives it another
 * session: whoever waits for its lock then finds the new session, not nothing. What is archived is the copy.
 *
 * No other index begins with the columns of the address: on a table without statistics the planner would as soon take
 * that one and filter by key, and keep the plan for as long as the connection lives.
 *
 * An entry is kept as its top-level fields, in order: names and values are JSON texts, so that a patch is array work
 * and no JSON function ever reads (and refuses or changes) what is in them.
 *
 * A record of ours is kept as the columns of its first four fields and `rest`, the text of its line after them; a
 * line that came from a file as `source`, with `rest` only when the line's own JSON is not the record.
 */
export const schema: string = `
CREATE SEQUENCE session_numbers;
CREATE TABLE sessions (
  namespace text NOT NULL,
  agent_id text NOT NULL,
  key text NOT NULL,
  archive_id text NOT NULL DEFAULT '',
  session_no bigint NOT NULL,
  session_id text NOT NULL,
  revision bigint NOT NULL,
  entry_names text[] NOT NULL,
  entry_values text[] NOT NULL,
  last_seq bigint NOT NULL DEFAULT 0,
  head_id text,
  window_seq bigint,
  fence bigint NOT NULL DEFAULT 0,
  turn_id text,
  turn_owner text,
  lease_until_ms bigint,
  message_count bigint NOT NULL DEFAULT 0,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  CONSTRAINT sessions_address PRIMARY KEY (namespace, agent_id, key, archive_id),
  CONSTRAINT sessions_number UNIQUE (session_no),
  CONSTRAINT sessions_id UNIQUE (session_id, agent_id, namespace)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX sessions_folded_id ON sessions (lower(session_id), agent_id, namespace);

CREATE TABLE records (
  session_no bigint NOT NULL,
  seq bigint NOT NULL,
  id text NOT NULL,
  parent_id text,
  type text NOT NULL,
  side boolean NOT NULL,
  timestamp text NOT NULL,
  ts_ms bigint,
  stored_at_ms bigint NOT NULL,
  bytes integer NOT NULL,
  crc bigint NOT NULL,
  rest text,
  source bytea,
  PRIMARY KEY (session_no, seq),
  UNIQUE (session_no, id),
  CHECK (rest IS NOT NULL OR source IS NOT NULL)
) PARTITION BY HASH (session_no);
${partitionsOf("records")}

CREATE TABLE idempotency (
  session_no bigint NOT NULL,
  key text NOT NULL,
  digest text NOT NULL,
  first_seq bigint,
  last_seq bigint,
  at_ms bigint NOT NULL,
  began text,
  PRIMARY KEY (session_no, key)
);
`;

/** A table of the shape of \`records\` that only the raw controls of the measurement write to. */
export const controlSchema: string = `
CREATE TABLE control_sessions (LIKE sessions INCLUDING ALL) WITH (fillfactor = 80);
CREATE TABLE control_records (LIKE records INCLUDING ALL) PARTITION BY HASH (session_no);
${partitionsOf("control_records")}
`;

function partitionsOf(table: string): string {
  return Array.from(
    { length: partitions },
    (_, index) =>
      `CREATE TABLE ${table}_${index} PARTITION OF ${table} FOR VALUES WITH (MODULUS ${partitions}, REMAINDER ${index});`,
  ).join("\n");
}
