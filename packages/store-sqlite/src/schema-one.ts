import { viewsOne } from "./schema-one-views.ts";

/**
 * `store_records` has one index beside its rowid: every further one would be paid by every append. Ids are looked up in
 * `store_record_ids`, which is filled only for sessions to which somebody appends ids of his own choosing. Sessions are
 * listed by the minute of their last change, and sorted within it. An index of the time itself would add a page to the
 * log with every append. A session's row stays small, because every append writes it; its entry, which may be large,
 * lies beside it.
 */
const tables = `
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
export const schemaOne: string = tables + viewsOne;
