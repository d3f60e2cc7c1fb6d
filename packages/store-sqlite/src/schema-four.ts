import { origins } from "./schema-three.ts";

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
const records = `
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
const views = `
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
export const schemaFour: string = records + views;
