import { appendFunction } from "./append-function.ts";
import { plainLayout, tenantLayout, type Layout, type LayoutName } from "./layout.ts";
import { noteErasedFunction } from "./erased-words.ts";
import { boundFunctions, patchFunctions } from "./patch-functions.ts";
import { contentsUnsampled } from "./policy-parts.ts";
import { readPageFunction, readWindowFunction } from "./read-functions.ts";
import { fileTables } from "./file-tables.ts";
import { saveFunction } from "./save-function.ts";
import { ownNamesInside } from "./statement-settings.ts";
import { clockFunction, rowClockFunction } from "./store-clock.ts";
import { summaryViews } from "./summary-views.ts";
import { behindTable, distribute, tenantColumn, type SchemaOptions, type TableKind } from "./table-parts.ts";
import { vectorStep } from "./vector-tables.ts";

/** Describes one step of the schema, from the version before it to `version`. */
export interface SchemaStep {
  readonly version: number;
  /** States the oldest step that a program must know to work with a database at this step. */
  readonly oldestProgram: number;
  /** `schema` is the quoted name of the schema. */
  sql(schema: string, options: SchemaOptions): string;
}

/**
 * Creates the tables of agents and sessions. Compared texts use COLLATE "C", so that they compare by bytes.
 *
 * `prev_head_id` is the head before the newest append. An append needs it, and only PostgreSQL 18 can return old
 * values. `head_bytes` is the length of the head as JSON, because the head is a part of the next line.
 *
 * The indexes hold the minute of the last change in place of its time, because the time would make every append write
 * every index. Both minutes are generated columns, so that they never differ from their times.
 *
 * A fork shares records of other sessions. `base_nos` are the numbers of those sessions, oldest first. `base_to_seqs`
 * are their last shared seqs, and `base_ids` the session ids that their payloads are bound to. `messages_ever` and a
 * record's `message_number` count messages as they were appended. `redacted_messages` lists the ones redacted since, so
 * that a fork at any seq gets its count without reading records.
 *
 * An entry is stored as its top-level fields in order. Names and values are JSON texts, so a patch is array work, and
 * no JSON function reads, refuses or changes their content. Under a codec the entry is in `entry_coded`. PostgreSQL
 * does not compress the arrays, so a list knows their size without reading them.
 *
 * `source_digest` is the digest of the source that the entry states as `importedFrom`. The client computes it, because
 * only the client reads an entry under a codec. A purge keeps it in `purged_sources`.
 *
 * No two indexes of a table start with the same column. Without statistics the planner might choose the wrong one, and
 * keep that plan as long as the connection lives. For the same reason the tenant is the last column of every key. The
 * planner would use an index that begins with the tenant to look up a session number.
 */
const sessions = (schema: string, kind: TableKind): string => `
CREATE SEQUENCE ${schema}.session_numbers;
CREATE TABLE ${schema}.agents (${tenantColumn(kind)}
  namespace text COLLATE "C" NOT NULL,
  folded_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (namespace, folded_id${kind.layout.last("tenant")})
)${behindTable(schema, "agents", kind)}
CREATE TABLE ${schema}.sessions (${tenantColumn(kind)}
  session_no bigint NOT NULL DEFAULT nextval('${schema}.session_numbers'),
  namespace text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  archive_id text COLLATE "C" NOT NULL DEFAULT '',
  session_id text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  last_seq bigint NOT NULL DEFAULT 0,
  head_id text COLLATE "C",
  head_bytes integer NOT NULL DEFAULT 4,
  prev_head_id text COLLATE "C",
  prev_head_bytes integer NOT NULL DEFAULT 4,
  window_seq bigint,
  fence bigint NOT NULL DEFAULT 0,
  turn_id text,
  turn_owner text,
  lease_until_ms double precision,
  message_count bigint NOT NULL DEFAULT 0,
  messages_ever bigint NOT NULL DEFAULT 0,
  created_at_ms bigint NOT NULL,
  appended_at_ms bigint NOT NULL DEFAULT 0,
  updated_at_ms bigint NOT NULL,
  appended_slot bigint GENERATED ALWAYS AS (appended_at_ms / 60000) STORED,
  archived boolean GENERATED ALWAYS AS (archive_id <> '') STORED,
  updated_slot bigint GENERATED ALWAYS AS (updated_at_ms / 60000) STORED,
  keyed_next bigint NOT NULL DEFAULT 1,
  keyed_rows integer NOT NULL DEFAULT 0,
  keyed_sweep_at integer NOT NULL DEFAULT 5120,
  keyed_horizon_ms bigint NOT NULL DEFAULT -1,
  base_nos bigint[],
  base_to_seqs bigint[],
  base_ids text[],
  redacted_messages bigint[],
  entry_names text[],
  entry_values text[],
  entry_coded bytea,
  source_digest text COLLATE "C",
  CONSTRAINT sessions_number PRIMARY KEY (session_no${kind.layout.last("tenant")}),
  CONSTRAINT sessions_address UNIQUE (namespace, agent_id, key, archive_id${kind.layout.last("tenant")})
)${behindTable(schema, "sessions", kind, " WITH (fillfactor = 70)")}
ALTER TABLE ${schema}.sessions
  ALTER COLUMN entry_names SET STORAGE EXTERNAL, ALTER COLUMN entry_values SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX sessions_folded_id ON ${schema}.sessions (lower(session_id), agent_id, namespace${kind.layout.last("tenant")});
CREATE INDEX sessions_listed ON ${schema}.sessions (archived, namespace, updated_slot DESC);
CREATE INDEX sessions_listed_by_agent ON ${schema}.sessions (agent_id, archived, namespace, updated_slot DESC);
CREATE INDEX sessions_appended ON ${schema}.sessions (appended_slot);
CREATE INDEX sessions_bases ON ${schema}.sessions USING gin (base_nos) WHERE base_nos IS NOT NULL;
CREATE INDEX sessions_source ON ${schema}.sessions (source_digest) WHERE source_digest IS NOT NULL;
`;

const purgedSources = (schema: string, kind: TableKind): string => `
CREATE TABLE ${schema}.purged_sources (${tenantColumn(kind)}
  namespace text COLLATE "C" NOT NULL,
  source_digest text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  purged_at_ms bigint NOT NULL,
  PRIMARY KEY (namespace, source_digest, agent_id${kind.layout.last("tenant")})
)${behindTable(schema, "purged_sources", kind)}
`;

/**
 * Creates the tables of records, payloads and idempotency keys. A record has columns and `rest`, the text of its line
 * from the timestamp on, which does not depend on the head. `form` is null for a record that Throughline wrote. It is 0
 * if `rest` is the whole imported line, and 1 or 2 if `source` is the imported line as text or bytes. Under a codec
 * `coded` replaces `rest`. A content over 256 KB is in `payloads` under its SHA-256.
 */
const records = (schema: string, kind: TableKind): string => `
CREATE TABLE ${schema}.records (${tenantColumn(kind)}
  session_no bigint NOT NULL,
  seq bigint NOT NULL,
  ts_ms bigint,
  stored_at_ms bigint NOT NULL,
  crc bigint NOT NULL,
  bytes integer NOT NULL,
  message_number integer NOT NULL,
  side boolean NOT NULL,
  form smallint,
  id text COLLATE "C" NOT NULL,
  parent_id text COLLATE "C",
  type text COLLATE "C" NOT NULL,
  role text,
  tool_name text,
  rest text,
  coded bytea,
  source bytea,
  rest_hash bytea,
  source_hash bytea,
  PRIMARY KEY (session_no, seq${kind.layout.last("tenant")}),
  UNIQUE (id, session_no${kind.layout.last("tenant")})
)${behindTable(schema, "records", kind)}
CREATE TABLE ${schema}.payloads (${tenantColumn(kind)}
  session_no bigint NOT NULL,
  hash bytea NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (session_no, hash${kind.layout.last("tenant")})
)${behindTable(schema, "payloads", kind)}
CREATE TABLE ${schema}.keyed_appends (${tenantColumn(kind)}
  session_no bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  number bigint NOT NULL,
  at_ms bigint NOT NULL,
  first_seq bigint NOT NULL,
  last_seq bigint NOT NULL,
  durability text NOT NULL,
  revision bigint NOT NULL,
  head_id text COLLATE "C",
  window_seq bigint,
  fence bigint NOT NULL,
  turn_id text,
  turn_owner text,
  lease_until_ms double precision,
  PRIMARY KEY (session_no, key${kind.layout.last("tenant")})
)${behindTable(schema, "keyed_appends", kind)}
`;

const others = (schema: string, kind: TableKind): string => `
CREATE TABLE ${schema}.search_documents (${tenantColumn(kind)}
  session_no bigint NOT NULL,
  seq bigint NOT NULL,
  ts_ms bigint,
  role text,
  words tsvector NOT NULL,
  PRIMARY KEY (session_no, seq${kind.layout.last("tenant")})
)${behindTable(schema, "search_documents", kind)}
CREATE INDEX search_documents_words ON ${schema}.search_documents USING gin (words);
${searchPositions(schema, kind)}
CREATE TABLE ${schema}.search_state (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  caught_up_slot bigint NOT NULL
);
INSERT INTO ${schema}.search_state (caught_up_slot) VALUES (0);
`;

const searchPositions = (schema: string, kind: TableKind): string =>
  kind.layout.name === "plain"
    ? `CREATE TABLE ${schema}.search_positions (
  session_no bigint PRIMARY KEY,
  indexed_seq bigint NOT NULL
);`
    : `CREATE TABLE ${schema}.search_positions (
  tenant bigint NOT NULL,
  session_no bigint NOT NULL,
  indexed_seq bigint NOT NULL,
  PRIMARY KEY (session_no, tenant)
)${behindTable(schema, "search_positions", kind)}`;

/**
 * Creates the table of open replies, which are JSON, or `coded` under a codec. A reply is removed with its session, and
 * when the session is archived or reset. In the plain layout a trigger and a foreign key do this without a further
 * round trip. Citus supports neither on its tables, so in the tenant layout the statements of the store remove the row.
 */
const partials = (schema: string, kind: TableKind): string =>
  kind.layout.name === "plain"
    ? `
CREATE TABLE ${schema}.partials (
  session_no bigint PRIMARY KEY REFERENCES ${schema}.sessions (session_no) ON DELETE CASCADE,
  fence bigint NOT NULL,
  turn_id text NOT NULL,
  content text,
  coded bytea
);
CREATE FUNCTION ${schema}.drop_partial_1() RETURNS trigger LANGUAGE plpgsql ${ownNamesInside} AS $drop$
BEGIN
  DELETE FROM ${schema}.partials p WHERE p.session_no = NEW.session_no;
  RETURN NULL;
END $drop$;
CREATE TRIGGER drop_partial AFTER UPDATE OF archive_id ON ${schema}.sessions
  FOR EACH ROW WHEN (NEW.archive_id <> OLD.archive_id) EXECUTE FUNCTION ${schema}.drop_partial_1();
`
    : `
CREATE TABLE ${schema}.partials (
  tenant bigint NOT NULL,
  session_no bigint NOT NULL,
  fence bigint NOT NULL,
  turn_id text NOT NULL,
  content text,
  coded bytea,
  PRIMARY KEY (session_no, tenant)
)${behindTable(schema, "partials", kind)}
`;

/**
 * Returns the whole schema. Citus spreads the tables before the functions and views follow, because it passes on at once
 * what depends on spread tables only.
 */
function wholeSchema(schema: string, options: SchemaOptions, layout: Layout): string {
  const kind = { ...options, layout };
  const clocks = [clockFunction(schema), rowClockFunction(schema)];
  const tables = [
    sessions(schema, kind),
    purgedSources(schema, kind),
    records(schema, kind),
    others(schema, kind),
    partials(schema, kind),
    fileTables(schema, kind),
  ];
  const isSpread = layout.name === "tenant" && options.isDistributed === true;
  const programs = [
    patchFunctions(schema),
    boundFunctions(schema),
    appendFunction(schema, layout),
    saveFunction(schema, layout),
    readPageFunction(schema, layout),
    readWindowFunction(schema, layout),
    summaryViews(schema, layout, isSpread),
    noteErasedFunction(schema),
  ];
  const unsampled = contentsUnsampled(schema);
  const parts = isSpread
    ? // Citus copies this setting of a column to its shards, and refuses to change it later.
      [...clocks, ...tables, unsampled, distribute(schema), ...programs]
    : [...clocks, ...tables, ...programs, unsampled];
  return parts.join("\n");
}

/** A program that does not know vectors would leave those of a text that it erases. */
function secondStep(layout: Layout): SchemaStep {
  return { version: 2, oldestProgram: 2, sql: (schema, options) => vectorStep(schema, { ...options, layout }) };
}

function firstStep(layout: Layout): SchemaStep {
  return { version: 1, oldestProgram: 1, sql: (schema, options) => wholeSchema(schema, options, layout) };
}

const steps: Readonly<Record<LayoutName, readonly SchemaStep[]>> = {
  plain: [firstStep(plainLayout), secondStep(plainLayout)],
  tenant: [firstStep(tenantLayout), secondStep(tenantLayout)],
};

/**
 * Returns the steps of a layout, oldest first. A published step never changes, because every database keeps its
 * checksum.
 */
export function schemaSteps(layout: LayoutName): readonly SchemaStep[] {
  return steps[layout];
}
