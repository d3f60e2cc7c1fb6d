import { type SchemaObject, view } from "./schema-objects.ts";

const rowOfSession = "s.key AS session_key, s.session, s.session_id, s.agent_id, s.namespace, s.archived";
const rowOfRecord =
  "r.parent_id, r.id, r.seq, r.type, r.role, r.tool_name, coalesce(r.ts_ms, r.stored_at_ms, 0) AS timestamp";

/**
 * Selects the sessions whose records a fork shares, each with the last shared seq. UNION ends also where a damaged file
 * has a circle of origins.
 */
const origins = `WITH RECURSIVE up (session, to_seq) AS (
    SELECT s.origin, s.origin_seq
    UNION
    SELECT o.origin, min(up.to_seq, o.origin_seq) FROM up JOIN store_sessions o ON o.session = up.session
    WHERE o.origin IS NOT NULL
  )`;
const shared = (rows: string, session: string): string =>
  `${session} IN (${origins} SELECT session FROM up) AND ${rows}.seq <= (${origins} SELECT to_seq FROM up WHERE session = ${rows}.session)`;

/**
 * Entered records are found by session and parent, later records by a scan of the end of the log. Both parts also find
 * the records that a fork shares. CROSS JOIN fixes the order of the lookups, and a plus sign keeps SQLite from using an
 * index.
 */
const children = view(
  "children",
  `SELECT ${rowOfRecord}, ${rowOfSession}
FROM store_sessions s CROSS JOIN store_children c ON c.session = s.session
CROSS JOIN store_records r ON r.session = c.session AND r.seq = c.seq AND r.parent_id = c.parent_id
UNION ALL
SELECT ${rowOfRecord}, ${rowOfSession}
FROM store_children_state t CROSS JOIN store_sessions s
CROSS JOIN store_records r ON r.record > t.entered_to AND +r.session = s.session
WHERE t.one = 1 AND r.parent_id IS NOT NULL
UNION ALL
SELECT ${rowOfRecord}, ${rowOfSession}
FROM store_sessions s CROSS JOIN store_children c ON ${shared("c", "c.session")}
CROSS JOIN store_records r ON r.session = c.session AND r.seq = c.seq AND r.parent_id = c.parent_id
WHERE s.origin IS NOT NULL
UNION ALL
SELECT ${rowOfRecord}, ${rowOfSession}
FROM store_children_state t CROSS JOIN store_sessions s
CROSS JOIN store_records r ON r.record > t.entered_to AND ${shared("r", "+r.session")}
WHERE t.one = 1 AND s.origin IS NOT NULL AND r.parent_id IS NOT NULL`,
);

const columns = `r.id, s.key AS session_key, r.parent_id, r.type, coalesce(r.ts_ms, r.stored_at_ms, 0) AS timestamp,
  CASE WHEN p.payload IS NOT NULL AND typeof(p.content) = 'text' THEN p.content
    WHEN p.payload IS NULL AND typeof(r.text) = 'text' THEN r.text END AS data,
  r.role, r.tool_name, s.session, r.seq, coalesce(r.source, o.content) AS source,
  s.session_id, s.agent_id, s.namespace, s.archived`;
const payloads = `LEFT JOIN store_payloads p ON p.payload = r.text_payload
LEFT JOIN store_payloads o ON o.payload = r.source_payload`;

/**
 * A condition on the session reaches both parts, so SQLite reads the records of one session by their index. With a
 * recursive part among the joined tables it would read every record of the file. CROSS JOIN fixes the order of the
 * lookups, and INDEXED BY names the index also where SQLite takes a table for small.
 */
const records = view(
  "records",
  `SELECT ${columns}
FROM store_sessions s CROSS JOIN store_records r INDEXED BY sqlite_autoindex_store_records_1 ON r.session = s.session
${payloads}
UNION ALL
SELECT ${columns}
FROM store_sessions s CROSS JOIN store_records r INDEXED BY sqlite_autoindex_store_records_1 ON r.session IN (${origins} SELECT session FROM up)
  AND r.seq <= (${origins} SELECT to_seq FROM up WHERE session = r.session)
${payloads}
WHERE s.origin IS NOT NULL`,
);

/**
 * Imports once kept marks in sessions without records, in a namespace of their own. The view leaves them
 * out. A session with records is always shown, whatever its name is.
 */
const isForImports = `s.last_seq = 0 AND s.agent_id = 'main' AND substr(s.namespace, -8) = '.imports'
  AND substr(s.key, 1, 19) = 'agent:main:imports:'`;

/**
 * The views are for people and programs that query the file. No code of this package reads them. Under a codec the
 * columns that would show content are null.
 *
 * `compactions` and `checkpoints` read the fields of our compactor and checkpointer first: `details.needsRetry` and
 * `checkpoint.model`. An import from GoClaw has `needsSummaryRetry` and `generatedBy` in their place. A compaction keeps
 * `needsRetry` for ever, because records do not change. Its entry says what is still due: a retry that succeeds removes
 * the id from `summaryRetries` in the same commit. A better summary that came later is a note about the compaction, and
 * the newest note is shown. A checkpoint without `coversToId` covers what is before it, as in `listCheckpoints`.
 */
export const views: readonly SchemaObject[] = [
  records,
  view("readable_records", "SELECT r.*, CASE WHEN json_valid(r.data) THEN r.data END AS json FROM records r"),
  view(
    "sessions",
    `SELECT s.key, s.created_at_ms AS created_at, s.updated_at_ms AS updated_at,
  CASE WHEN typeof(e.entry) = 'text' THEN e.entry END AS metadata,
  s.namespace, s.agent_id, s.session_id, s.archived, s.revision, s.head_id, s.last_seq AS record_count, s.message_count
FROM store_sessions s JOIN store_entries e ON e.session = s.session
WHERE NOT (${isForImports})`,
  ),
  view(
    "messages",
    `SELECT r.id, r.session_key, r.parent_id, r.type, r.timestamp,
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
WHERE r.type = 'message' AND r.role = 'assistant' AND b.type = 'object' AND json_extract(b.value, '$.type') = 'toolCall'`,
  ),
  view(
    "compactions",
    `SELECT r.id, r.session_key, r.timestamp,
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
FROM readable_records r WHERE r.type = 'compaction'`,
  ),
  view(
    "checkpoints",
    `SELECT r.id, r.session_key, r.timestamp,
  json_extract(r.json, '$.checkpoint.summary') AS summary,
  json_extract(r.json, '$.checkpoint.tokensAtCheckpoint') AS tokens_at_checkpoint,
  json_extract(r.json, '$.checkpoint.messageCountAtCheckpoint') AS message_count_at_checkpoint,
  json_extract(r.json, '$.checkpoint.topics') AS topics,
  json_extract(r.json, '$.checkpoint.keyDecisions') AS key_decisions,
  json_extract(r.json, '$.checkpoint.openQuestions') AS open_questions,
  coalesce(json_extract(r.json, '$.checkpoint.model'), json_extract(r.json, '$.checkpoint.generatedBy')) AS generated_by,
  coalesce(json_extract(r.json, '$.checkpoint.coversToId'), r.parent_id) AS covers_up_to,
  r.data, r.seq, r.session_id, r.agent_id, r.namespace, r.archived
FROM readable_records r WHERE r.type = 'checkpoint'`,
  ),
  children,
];
