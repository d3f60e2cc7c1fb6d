/**
 * Views for people and programs that query the file: the tables the older session layers describe, with their column
 * names. Nothing in this package reads them. Under a codec the columns that would show content are null.
 */
export const viewsOne: string = `
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
