import { schemaSix } from "./schema-checksums.ts";

/**
 * Views for people and programs that query the file: the tables the older session layers describe, with their column
 * names. Nothing in this package reads them. Under a codec the columns that would show content are null.
 */
const viewsOne = `
CREATE VIEW records AS
SELECT r.id, s.key AS session_key, r.parent_id, r.type, coalesce(r.ts_ms, r.stored_at_ms, 0) AS timestamp,
  CASE WHEN typeof(r.text) = 'text' THEN r.text END AS data,
  r.role, r.tool_name, r.session, r.seq, r.source, s.session_id, s.agent_id, s.namespace, s.archived
FROM store_records r JOIN store_sessions s ON s.session = r.session;

CREATE VIEW readable_records AS
SELECT r.*, CASE WHEN json_valid(r.data) THEN r.data END AS json FROM records r;

CREATE VIEW sessions AS
SELECT s.key, s.created_at_ms AS created_at, s.updated_at_ms AS updated_at,
  CASE WHEN typeof(e.entry) = 'text' THEN e.entry END AS metadata,
  s.namespace, s.agent_id, s.session_id, s.archived, s.revision, s.head_id, s.last_seq AS record_count, s.message_count
FROM store_sessions s JOIN store_entries e ON e.session = s.session;

CREATE VIEW messages AS
SELECT r.id, r.session_key, r.parent_id, r.type, r.timestamp,
  CASE r.role WHEN 'toolResult' THEN 'tool_result' ELSE r.role END AS role,
  json_extract(r.json, '$.message.content') AS content,
  r.tool_name,
  NULL AS tool_input,
  CASE r.role WHEN 'toolResult' THEN json_extract(r.json, '$.message.content') END AS tool_result,
  CASE r.role WHEN 'toolResult' THEN coalesce(json_extract(r.json, '$.message.isError'), 0) END AS tool_is_error,
  r.data, r.seq, r.session_id, r.agent_id, r.namespace, r.archived
FROM readable_records r WHERE r.type = 'message'
UNION ALL
SELECT r.id || '#' || coalesce(json_extract(b.value, '$.id'), b.key), r.session_key, r.id, r.type, r.timestamp, 'tool_use',
  NULL, json_extract(b.value, '$.name'), json_extract(b.value, '$.arguments'), NULL, NULL,
  b.value, r.seq, r.session_id, r.agent_id, r.namespace, r.archived
FROM readable_records r
JOIN json_each(CASE json_type(r.json, '$.message.content') WHEN 'array' THEN json_extract(r.json, '$.message.content') ELSE '[]' END) b
WHERE r.type = 'message' AND r.role = 'assistant' AND b.type = 'object' AND json_extract(b.value, '$.type') = 'toolCall';

CREATE VIEW compactions AS
SELECT r.id, r.session_key, r.timestamp,
  json_extract(r.json, '$.summary') AS summary,
  json_extract(r.json, '$.firstKeptEntryId') AS first_kept_entry_id,
  json_extract(r.json, '$.tokensBefore') AS tokens_before,
  coalesce(json_extract(r.json, '$.details.needsSummaryRetry'), 0) AS needs_summary_retry,
  r.data, r.seq, r.session_id, r.agent_id, r.namespace, r.archived
FROM readable_records r WHERE r.type = 'compaction';

CREATE VIEW checkpoints AS
SELECT r.id, r.session_key, r.timestamp,
  json_extract(r.json, '$.checkpoint.summary') AS summary,
  json_extract(r.json, '$.checkpoint.tokensAtCheckpoint') AS tokens_at_checkpoint,
  json_extract(r.json, '$.checkpoint.messageCountAtCheckpoint') AS message_count_at_checkpoint,
  json_extract(r.json, '$.checkpoint.topics') AS topics,
  json_extract(r.json, '$.checkpoint.keyDecisions') AS key_decisions,
  json_extract(r.json, '$.checkpoint.openQuestions') AS open_questions,
  json_extract(r.json, '$.checkpoint.generatedBy') AS generated_by,
  json_extract(r.json, '$.checkpoint.coversToId') AS covers_up_to,
  r.data, r.seq, r.session_id, r.agent_id, r.namespace, r.archived
FROM readable_records r WHERE r.type = 'checkpoint';
`;

/**
 * `store_records` has one index beside its rowid: every further one would be paid by every append. Ids are looked up in
 * `store_record_ids`, which is filled only for sessions to which somebody appends ids of his own choosing. Sessions are
 * listed by the minute of their last change, and sorted within it. An index of the time itself would add a page to the
 * log with every append. A session's row stays small, because every append writes it; its entry, which may be large,
 * lies beside it.
 */
const tablesOne = `
CREATE TABLE store_info (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE store_sessions (
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
  keyed_horizon_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX store_sessions_current ON store_sessions (namespace, agent_id, key) WHERE archived = 0;
CREATE UNIQUE INDEX store_sessions_key ON store_sessions (namespace, agent_id, key, session_id);
CREATE UNIQUE INDEX store_sessions_id
  ON store_sessions (namespace, agent_id COLLATE NOCASE, session_id COLLATE NOCASE);
CREATE INDEX store_sessions_updated ON store_sessions (namespace, archived, updated_slot DESC);

CREATE TABLE store_entries (
  session INTEGER PRIMARY KEY REFERENCES store_sessions ON DELETE CASCADE,
  entry ANY NOT NULL
) STRICT;

CREATE TABLE store_records (
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
  UNIQUE (session, seq)
) STRICT;

CREATE TABLE store_record_ids (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE store_keyed_appends (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  idempotency_key TEXT NOT NULL,
  digest BLOB NOT NULL,
  number INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  from_seq INTEGER NOT NULL,
  record_count INTEGER NOT NULL,
  result TEXT NOT NULL,
  PRIMARY KEY (session, idempotency_key)
) STRICT, WITHOUT ROWID;
`;

/** The first step, as it ran: never to be changed. */
const schemaOne = tablesOne + viewsOne;

/**
 * Forks: a session with an `origin` has the records of that session up to `origin_seq` before its own.
 *
 * Payloads: what is large lies beside its record, once for all records that hold the same. Nobody counts references:
 * the two indexes, which have a row only for such records, tell whether a payload is still in use.
 *
 * Search: an index without content, filled behind the log up to `indexed_to`, a number of `store_records`. The words are
 * made by core, so the tokenizer has only to split at spaces; `secure-delete` takes what is deleted out of the pages. Its
 * parts are merged in steps of our own: SQLite's would hold everybody up for as long as they take.
 */
const tablesTwo = `
ALTER TABLE store_sessions ADD COLUMN origin INTEGER;
ALTER TABLE store_sessions ADD COLUMN origin_seq INTEGER;
CREATE INDEX store_sessions_origin ON store_sessions (origin, origin_seq) WHERE origin IS NOT NULL;

CREATE TABLE store_payloads (
  payload INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  content ANY NOT NULL
) STRICT;
ALTER TABLE store_records ADD COLUMN text_payload INTEGER;
ALTER TABLE store_records ADD COLUMN source_payload INTEGER;
CREATE INDEX store_records_text_payload ON store_records (text_payload) WHERE text_payload IS NOT NULL;
CREATE INDEX store_records_source_payload ON store_records (source_payload) WHERE source_payload IS NOT NULL;

CREATE VIRTUAL TABLE store_search USING fts5 (words, names, tools, content = '', tokenize = "ascii tokenchars '_'");
INSERT INTO store_search (store_search, rank) VALUES ('secure-delete', 1), ('automerge', 0), ('crisismerge', 200);
CREATE TABLE store_search_state (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  indexed_to INTEGER NOT NULL,
  rules INTEGER NOT NULL,
  changes INTEGER NOT NULL
) STRICT;
INSERT INTO store_search_state VALUES (1, 0, 1, 0);
`;

/** The view the others stand on: a fork shows the records it shares as its own. */
const viewsTwo = `
DROP VIEW records;
CREATE VIEW records AS
WITH RECURSIVE shared (session, origin, to_seq) AS (
  SELECT session, origin, origin_seq FROM store_sessions WHERE origin IS NOT NULL
  UNION ALL
  SELECT shared.session, s.origin, min(shared.to_seq, s.origin_seq)
  FROM shared JOIN store_sessions s ON s.session = shared.origin WHERE s.origin IS NOT NULL
)
SELECT r.id, s.key AS session_key, r.parent_id, r.type, coalesce(r.ts_ms, r.stored_at_ms, 0) AS timestamp,
  CASE WHEN p.payload IS NOT NULL AND typeof(p.content) = 'text' THEN p.content
    WHEN p.payload IS NULL AND typeof(r.text) = 'text' THEN r.text END AS data,
  r.role, r.tool_name, s.session, r.seq, coalesce(r.source, o.content) AS source,
  s.session_id, s.agent_id, s.namespace, s.archived
FROM store_records r JOIN store_sessions s ON s.session = r.session
LEFT JOIN store_payloads p ON p.payload = r.text_payload
LEFT JOIN store_payloads o ON o.payload = r.source_payload
UNION ALL
SELECT r.id, s.key AS session_key, r.parent_id, r.type, coalesce(r.ts_ms, r.stored_at_ms, 0) AS timestamp,
  CASE WHEN p.payload IS NOT NULL AND typeof(p.content) = 'text' THEN p.content
    WHEN p.payload IS NULL AND typeof(r.text) = 'text' THEN r.text END AS data,
  r.role, r.tool_name, s.session, r.seq, coalesce(r.source, o.content) AS source,
  s.session_id, s.agent_id, s.namespace, s.archived
FROM shared JOIN store_sessions s ON s.session = shared.session
JOIN store_records r ON r.session = shared.origin AND r.seq <= shared.to_seq
LEFT JOIN store_payloads p ON p.payload = r.text_payload
LEFT JOIN store_payloads o ON o.payload = r.source_payload;
`;

/** The second step, as it ran: never to be changed once it was released. */
const schemaTwo = tablesTwo + viewsTwo;

/**
 * Children: which records name one as their parent. An index on `store_records` would add a page to the log with every
 * turn. So it is a table of its own, filled after the log up to `entered_to`, a number of `store_records`.
 */
const tablesThree = `
CREATE TABLE store_children (
  session INTEGER NOT NULL REFERENCES store_sessions ON DELETE CASCADE,
  parent_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (session, parent_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE store_children_state (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  entered_to INTEGER NOT NULL
) STRICT;
INSERT INTO store_children_state VALUES (1, 0);
`;

const own = "s.key AS session_key, s.session, s.session_id, s.agent_id, s.namespace, s.archived";
const ofRecord =
  "r.parent_id, r.id, r.seq, r.type, r.role, r.tool_name, coalesce(r.ts_ms, r.stored_at_ms, 0) AS timestamp";

/** The sessions whose records a fork shares, each with the last it shares of them. UNION ends also where a damaged file turns in circles. */
const origins = `WITH RECURSIVE up (session, to_seq) AS (
    SELECT s.origin, s.origin_seq
    UNION
    SELECT o.origin, min(up.to_seq, o.origin_seq) FROM up JOIN store_sessions o ON o.session = up.session
    WHERE o.origin IS NOT NULL
  )`;
const shared = (table: string, session: string): string =>
  `${session} IN (${origins} SELECT session FROM up) AND ${table}.seq <= (${origins} SELECT to_seq FROM up WHERE session = ${table}.session)`;

/**
 * It holds at any time. Entered records are found by session and parent, later ones by a scan of the end of the log.
 * Both also serve the records that a fork shares. CROSS JOIN keeps the order in which they are looked up, a plus sign
 * an index out.
 */
const viewsThree = `
CREATE VIEW children AS
SELECT ${ofRecord}, ${own}
FROM store_sessions s CROSS JOIN store_children c ON c.session = s.session
CROSS JOIN store_records r ON r.session = c.session AND r.seq = c.seq AND r.parent_id = c.parent_id
UNION ALL
SELECT ${ofRecord}, ${own}
FROM store_children_state t CROSS JOIN store_sessions s
CROSS JOIN store_records r ON r.record > t.entered_to AND +r.session = s.session
WHERE t.one = 1 AND r.parent_id IS NOT NULL
UNION ALL
SELECT ${ofRecord}, ${own}
FROM store_sessions s CROSS JOIN store_children c ON ${shared("c", "c.session")}
CROSS JOIN store_records r ON r.session = c.session AND r.seq = c.seq AND r.parent_id = c.parent_id
WHERE s.origin IS NOT NULL
UNION ALL
SELECT ${ofRecord}, ${own}
FROM store_children_state t CROSS JOIN store_sessions s
CROSS JOIN store_records r ON r.record > t.entered_to AND ${shared("r", "+r.session")}
WHERE t.one = 1 AND s.origin IS NOT NULL AND r.parent_id IS NOT NULL;
`;

/** The third step, as it ran: never to be changed once it was released. */
const schemaThree = tablesThree + viewsThree;

const columns = `r.id, s.key AS session_key, r.parent_id, r.type, coalesce(r.ts_ms, r.stored_at_ms, 0) AS timestamp,
  CASE WHEN p.payload IS NOT NULL AND typeof(p.content) = 'text' THEN p.content
    WHEN p.payload IS NULL AND typeof(r.text) = 'text' THEN r.text END AS data,
  r.role, r.tool_name, s.session, r.seq, coalesce(r.source, o.content) AS source,
  s.session_id, s.agent_id, s.namespace, s.archived`;
const payloads = `LEFT JOIN store_payloads p ON p.payload = r.text_payload
LEFT JOIN store_payloads o ON o.payload = r.source_payload`;

/**
 * The same rows as before. A condition on the session now reaches both parts, so that the records of one session are
 * read by their index. With a recursive part among the joined tables, every record of the file was read. CROSS JOIN
 * keeps the order, and INDEXED BY the index where SQLite takes a table for small.
 */
const recordViewFour = `
DROP VIEW records;
CREATE VIEW records AS
SELECT ${columns}
FROM store_sessions s CROSS JOIN store_records r INDEXED BY sqlite_autoindex_store_records_1 ON r.session = s.session
${payloads}
UNION ALL
SELECT ${columns}
FROM store_sessions s CROSS JOIN store_records r INDEXED BY sqlite_autoindex_store_records_1 ON r.session IN (${origins} SELECT session FROM up)
  AND r.seq <= (${origins} SELECT to_seq FROM up WHERE session = r.session)
${payloads}
WHERE s.origin IS NOT NULL;
`;

/**
 * The views of summaries read the fields that our compactor and checkpointer write: `details.needsRetry` and
 * `checkpoint.model`. `needsSummaryRetry` and `generatedBy` are what an import from GoClaw keeps of its columns.
 *
 * A compaction of ours keeps `needsRetry` for ever, because no record changes. Its entry says what is still due: the retry
 * that succeeds takes the id out of `summaryRetries` in the same commit.
 * A better summary that came later is a note about the compaction: the newest one is shown.
 * A checkpoint without `coversToId` covers what is before it, as `listCheckpoints` reads it.
 */
const viewsFour = `
DROP VIEW compactions;
CREATE VIEW compactions AS
SELECT r.id, r.session_key, r.timestamp,
  coalesce((
    SELECT json_extract(n.json, '$.data.summary') FROM readable_records n
    WHERE n.session = r.session AND n.type = 'custom' AND n.seq > r.seq
      AND json_extract(n.json, '$.data.kind') = 'summary-superseded' AND json_extract(n.json, '$.data.summaryId') = r.id
    ORDER BY n.seq DESC LIMIT 1), json_extract(r.json, '$.summary')) AS summary,
  json_extract(r.json, '$.firstKeptEntryId') AS first_kept_entry_id,
  json_extract(r.json, '$.tokensBefore') AS tokens_before,
  CASE WHEN r.json IS NULL THEN NULL
    WHEN json_extract(r.json, '$.details.needsRetry') THEN EXISTS (
      SELECT 1 FROM store_entries e
      JOIN json_each(CASE WHEN typeof(e.entry) = 'text' AND json_valid(e.entry) THEN e.entry ELSE '{}' END, '$.summaryRetries') t
      WHERE e.session = r.session AND t.key = r.id)
    ELSE coalesce(json_extract(r.json, '$.details.needsSummaryRetry'), 0) END AS needs_summary_retry,
  r.data, r.seq, r.session_id, r.agent_id, r.namespace, r.archived
FROM readable_records r WHERE r.type = 'compaction';

DROP VIEW checkpoints;
CREATE VIEW checkpoints AS
SELECT r.id, r.session_key, r.timestamp,
  json_extract(r.json, '$.checkpoint.summary') AS summary,
  json_extract(r.json, '$.checkpoint.tokensAtCheckpoint') AS tokens_at_checkpoint,
  json_extract(r.json, '$.checkpoint.messageCountAtCheckpoint') AS message_count_at_checkpoint,
  json_extract(r.json, '$.checkpoint.topics') AS topics,
  json_extract(r.json, '$.checkpoint.keyDecisions') AS key_decisions,
  json_extract(r.json, '$.checkpoint.openQuestions') AS open_questions,
  coalesce(json_extract(r.json, '$.checkpoint.model'), json_extract(r.json, '$.checkpoint.generatedBy')) AS generated_by,
  coalesce(json_extract(r.json, '$.checkpoint.coversToId'), r.parent_id) AS covers_up_to,
  r.data, r.seq, r.session_id, r.agent_id, r.namespace, r.archived
FROM readable_records r WHERE r.type = 'checkpoint';
`;

/** The fourth step, as it ran: never to be changed once it was released. */
const schemaFour = recordViewFour + viewsFour;

/**
 * What an import keeps for itself lies in sessions without records, in a namespace of their own: `marksNamespace` of the
 * transfer package makes it, and lists leave it out. Whoever queries the file does not want it either. A session that has
 * records has its row, whatever it is called.
 */
const isForImports = `s.last_seq = 0 AND s.agent_id = 'main' AND substr(s.namespace, -8) = '.imports'
  AND substr(s.key, 1, 19) = 'agent:main:imports:'`;

/** The fifth step, as it ran: never to be changed once it was released. */
const schemaFive = `
DROP VIEW sessions;
CREATE VIEW sessions AS
SELECT s.key, s.created_at_ms AS created_at, s.updated_at_ms AS updated_at,
  CASE WHEN typeof(e.entry) = 'text' THEN e.entry END AS metadata,
  s.namespace, s.agent_id, s.session_id, s.archived, s.revision, s.head_id, s.last_seq AS record_count, s.message_count
FROM store_sessions s JOIN store_entries e ON e.session = s.session
WHERE NOT (${isForImports});
`;

/** "Tlne": says in the file's header that it is a store of ours. */
export const applicationId = 0x546c6e65;

/** One step of the schema, from the version before it to `version`. */
export interface SchemaStep {
  readonly version: number;
  readonly sql: string;
}

/** Every step, oldest first. A step that was released is never changed: what is to be different is a step of its own. */
export const schemaSteps: readonly SchemaStep[] = [
  { version: 1, sql: schemaOne },
  { version: 2, sql: schemaTwo },
  { version: 3, sql: schemaThree },
  { version: 4, sql: schemaFour },
  { version: 5, sql: schemaFive },
  { version: 6, sql: schemaSix },
];
