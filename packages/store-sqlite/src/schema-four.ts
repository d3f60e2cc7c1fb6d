/**
 * The views of summaries read the fields that our compactor and checkpointer write: `details.needsRetry` and
 * `checkpoint.model`. `needsSummaryRetry` and `generatedBy` are what an import from GoClaw keeps of its columns.
 *
 * A compaction of ours keeps `needsRetry` for ever, because no record changes. Its entry says what is still due: the retry
 * that succeeds takes the id out of `summaryRetries` in the same commit.
 * A checkpoint without `coversToId` covers what is before it, as `listCheckpoints` reads it.
 */
const views = `
DROP VIEW compactions;
CREATE VIEW compactions AS
SELECT r.id, r.session_key, r.timestamp,
  json_extract(r.json, '$.summary') AS summary,
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
export const schemaFour: string = views;
