import { index, type SchemaObject, table } from "./schema-objects.ts";
import { views } from "./schema-views.ts";

/** "Tlne": marks the header of the file as a Throughline store. */
export const applicationId = 0x546c6e65;

/** The version of the schema below. It changes with every change of a table, an index or a view. */
export const schemaVersion = 9;

/**
 * Each append writes the row of its session, so that row stays small: the entry, which may be large, has a table of its
 * own. A session with an `origin` is a fork. It has the records of that session up to `origin_seq` before its own.
 * Repair recognizes rows by the order and the kinds of their columns, see `salvage.ts`.
 */
const sessionTables = [
  table(
    "store_sessions",
    `CREATE TABLE store_sessions (
  session INTEGER PRIMARY KEY AUTOINCREMENT,
  namespace TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  key TEXT NOT NULL,
  archived INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  head_id TEXT,
  window_seq INTEGER,
  fence INTEGER NOT NULL,
  turn TEXT,
  message_count INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  updated_slot INTEGER NOT NULL,
  ids_to_seq INTEGER NOT NULL,
  keyed_next INTEGER NOT NULL,
  keyed_rows INTEGER NOT NULL,
  keyed_sweep_at INTEGER NOT NULL,
  keyed_horizon_ms INTEGER NOT NULL,
  origin INTEGER,
  origin_seq INTEGER,
  source_digest TEXT,
  crc INTEGER
) STRICT`,
  ),
  index("store_sessions_current", "store_sessions", "(namespace, agent_id, key) WHERE archived = 0", "UNIQUE INDEX"),
  index("store_sessions_key", "store_sessions", "(namespace, agent_id, key, session_id)", "UNIQUE INDEX"),
  index(
    "store_sessions_id",
    "store_sessions",
    "(namespace, agent_id COLLATE NOCASE, session_id COLLATE NOCASE)",
    "UNIQUE INDEX",
  ),
  // Lists are sorted by the minute of the last change: an index of the time itself would add a page to each append.
  index("store_sessions_updated", "store_sessions", "(namespace, archived, updated_slot DESC)"),
  index("store_sessions_origin", "store_sessions", "(origin, origin_seq) WHERE origin IS NOT NULL"),
  // Only an entry with another source writes the column, so other writes leave these indexes alone. Each shows damage of
  // the other: a source that an index hides would be imported again.
  index("store_sessions_source", "store_sessions", "(namespace, source_digest) WHERE source_digest IS NOT NULL"),
  index("store_sessions_digest", "store_sessions", "(source_digest, namespace) WHERE source_digest IS NOT NULL"),
  table(
    "store_entries",
    `CREATE TABLE store_entries (
  session INTEGER PRIMARY KEY REFERENCES store_sessions ON DELETE CASCADE,
  entry ANY NOT NULL,
  crc INTEGER
) STRICT`,
  ),
  table(
    "store_keyed_appends",
    `CREATE TABLE store_keyed_appends (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  idempotency_key TEXT NOT NULL,
  digest BLOB NOT NULL,
  number INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  from_seq INTEGER NOT NULL,
  record_count INTEGER NOT NULL,
  result TEXT NOT NULL,
  PRIMARY KEY (session, idempotency_key)
) STRICT, WITHOUT ROWID`,
  ),
  table(
    "store_partials",
    `CREATE TABLE store_partials (
  session INTEGER PRIMARY KEY REFERENCES store_sessions ON DELETE CASCADE,
  fence INTEGER NOT NULL,
  turn_id TEXT NOT NULL,
  partial ANY NOT NULL
) STRICT`,
  ),
  // This table outlives its sessions. It has a rowid, because repair finds only rows of such tables on damaged pages.
  table(
    "store_purged_sources",
    `CREATE TABLE store_purged_sources (
  purge INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  source_digest TEXT NOT NULL,
  purged_at_ms INTEGER NOT NULL,
  crc INTEGER NOT NULL,
  UNIQUE (namespace, source_digest, agent_id)
) STRICT`,
  ),
];

/**
 * `store_records` has one index beside its rowid, because each append pays for every further index. Ids are looked up
 * in `store_record_ids`, which is filled only for sessions to which a caller appends ids of its own. A large payload is
 * stored beside its record, once for all records that hold the same payload. The two partial indexes tell whether a
 * payload is still in use.
 */
const recordTables = [
  table(
    "store_records",
    `CREATE TABLE store_records (
  record INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  parent_id TEXT,
  type TEXT NOT NULL,
  side INTEGER NOT NULL,
  ts_ms INTEGER,
  stored_at_ms INTEGER,
  bytes INTEGER NOT NULL,
  crc INTEGER,
  role TEXT,
  tool_name TEXT,
  text ANY NOT NULL,
  source_form INTEGER,
  source ANY,
  text_payload INTEGER,
  source_payload INTEGER,
  head_crc INTEGER,
  UNIQUE (session, seq)
) STRICT`,
  ),
  table(
    "store_record_ids",
    `CREATE TABLE store_record_ids (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID`,
  ),
  table(
    "store_payloads",
    `CREATE TABLE store_payloads (
  payload INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  content ANY NOT NULL
) STRICT`,
  ),
  index("store_records_text_payload", "store_records", "(text_payload) WHERE text_payload IS NOT NULL"),
  index("store_records_source_payload", "store_records", "(source_payload) WHERE source_payload IS NOT NULL"),
];

/**
 * A file has an id once all of it is there. Without an id and a size it is an upload that arrives. With a size and
 * without an id it is being deleted. A reference belongs to each session that shows its record, so a fork has its own.
 */
const fileTables = [
  table(
    "store_files",
    `CREATE TABLE store_files (
  file INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  upload TEXT NOT NULL UNIQUE,
  file_id TEXT,
  bytes INTEGER,
  stored_at_ms INTEGER NOT NULL
) STRICT`,
  ),
  index("store_files_id", "store_files", "(namespace, agent_id, file_id) WHERE file_id IS NOT NULL", "UNIQUE INDEX"),
  index("store_files_out", "store_files", "(stored_at_ms) WHERE file_id IS NULL"),
  table(
    "store_file_chunks",
    `CREATE TABLE store_file_chunks (
  chunk INTEGER PRIMARY KEY,
  file INTEGER NOT NULL REFERENCES store_files,
  number INTEGER NOT NULL,
  content BLOB NOT NULL,
  UNIQUE (file, number)
) STRICT`,
  ),
  table(
    "store_file_references",
    `CREATE TABLE store_file_references (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  file_id TEXT NOT NULL,
  PRIMARY KEY (session, seq, file_id)
) STRICT, WITHOUT ROWID`,
  ),
  index("store_file_references_file", "store_file_references", "(file_id)"),
];

/** Numbers the rules by which core makes words and stems. Other rules require a new index. */
export const searchRules = 2;

/**
 * The search index has no content and is filled behind the log, up to the record number `indexed_to`. Core makes the
 * words, so the tokenizer only splits at spaces. `stems` holds the stems that differ from their word, because a search
 * for a stem reads `words` too.
 */
const searchIndex = table(
  "store_search",
  `CREATE VIRTUAL TABLE store_search USING fts5 (words, names, tools, stems, content = '', tokenize = "ascii tokenchars '_'")`,
);

/**
 * Creates an empty search index. `secure-delete` removes deleted words from the pages. SQLite's own merges are off,
 * because they block every other writer until they end: the store merges in short steps.
 */
export const createSearchIndex: string = `${searchIndex.sql};
INSERT INTO store_search (store_search, rank) VALUES ('secure-delete', 1), ('automerge', 0), ('crisismerge', 200);`;

/**
 * SQLite overwrites every page of a full-text index that is emptied, which takes long for a large index. So the tables
 * are renamed at once to names that FTS5 does not know, and deleted a few pages at a time.
 */
export const renamedTables = [
  { table: "store_search_data", aside: "store_search_old", rowsAtOnce: 96 },
  { table: "store_search_docsize", aside: "store_search_old_sizes", rowsAtOnce: 2000 },
] as const;

/**
 * `store_children` finds the records that name a record as their parent. An index on `store_records` would add a page
 * to each turn, so the table is filled behind the log, up to the record number `entered_to`.
 */
const derivedTables = [
  table(
    "store_search_state",
    `CREATE TABLE store_search_state (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  indexed_to INTEGER NOT NULL,
  rules INTEGER NOT NULL,
  changes INTEGER NOT NULL
) STRICT`,
  ),
  table(
    "store_children",
    `CREATE TABLE store_children (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  parent_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (session, parent_id, seq)
) STRICT, WITHOUT ROWID`,
  ),
  table(
    "store_children_state",
    `CREATE TABLE store_children_state (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  entered_to INTEGER NOT NULL
) STRICT`,
  ),
];

const storeInfo = table(
  "store_info",
  "CREATE TABLE store_info (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
);

const statementsOf = (objects: readonly SchemaObject[]): string => objects.map(({ sql }) => `${sql};\n`).join("");

/** Creates the whole schema with its first rows in an empty database. */
export const createSchemaText: string = `${statementsOf([storeInfo, ...sessionTables, ...recordTables, ...fileTables])}${createSearchIndex}
${statementsOf([...derivedTables, ...views])}INSERT INTO store_search_state VALUES (1, 0, ${searchRules}, 0);
INSERT INTO store_children_state VALUES (1, 0);`;

const constraintIndex = (on: string): SchemaObject => ({
  type: "index",
  name: `sqlite_autoindex_${on}_1`,
  table: on,
  sql: null,
});

/** A table that FTS5 creates for the search index, with its name in quotes. */
const searchTable = (name: string, body: string): SchemaObject => table(name, `CREATE TABLE '${name}'${body}`);

/** All rows that `createSchemaText` leaves in `sqlite_schema`, with those that SQLite adds by itself. */
export const schemaObjects: readonly SchemaObject[] = [
  storeInfo,
  ...sessionTables,
  table("sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"),
  ...recordTables,
  ...fileTables,
  constraintIndex("store_purged_sources"),
  constraintIndex("store_records"),
  constraintIndex("store_payloads"),
  constraintIndex("store_files"),
  constraintIndex("store_file_chunks"),
  searchIndex,
  searchTable("store_search_data", "(id INTEGER PRIMARY KEY, block BLOB)"),
  searchTable("store_search_idx", "(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID"),
  searchTable("store_search_docsize", "(id INTEGER PRIMARY KEY, sz BLOB)"),
  searchTable("store_search_config", "(k PRIMARY KEY, v) WITHOUT ROWID"),
  ...derivedTables,
  ...views,
];
