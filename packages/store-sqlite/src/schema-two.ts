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
const tables = `
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
const views = `
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
export const schemaTwo: string = tables + views;
