/** What \`load\` and \`save\` give back. */
const stateColumns: string = `session_id, archive_id, revision, entry_names, entry_values, last_seq, head_id, window_seq,
  fence, turn_id, turn_owner, lease_until_ms, message_count, created_at_ms, updated_at_ms`;

export const loadStatement: string = `
SELECT ${stateColumns} FROM sessions
WHERE namespace = $1::text AND agent_id = $2::text AND key = $3::text AND archive_id = $4::text`;

/**
 * Compare-and-swap on the entry. \`updated\` changes the row in place, also when the entry names another session, and
 * \`archived\` then keeps what was there: it takes the old row from \`updated\`, so that the old id is free by then.
 * Nothing comes back but \`known\` when the revision is another one.
 */
export const saveStatement: string = `
WITH locked AS MATERIALIZED (
  SELECT *, session_id <> $6::text AS is_reset FROM sessions
  WHERE namespace = $1::text AND agent_id = $2::text AND key = $3::text AND archive_id = $4::text
  FOR UPDATE
), timed AS MATERIALIZED (
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms
  FROM (SELECT count(*) FROM locked) AS after_the_wait
), claim AS MATERIALIZED (
  SELECT now_ms, CASE WHEN $9::bigint > now_ms + 300000 THEN now_ms ELSE $9 END AS claimed_ms FROM timed
), created AS (
  INSERT INTO sessions (namespace, agent_id, key, archive_id, session_no, session_id, revision, entry_names,
    entry_values, created_at_ms, updated_at_ms)
  SELECT $1, $2, $3, '', nextval('session_numbers'), $6, 1, $7::text[], $8::text[], c.now_ms, coalesce(c.claimed_ms, c.now_ms)
  FROM claim c WHERE $5::bigint IS NULL AND $4 = '' AND NOT EXISTS (SELECT FROM locked)
  ON CONFLICT ON CONSTRAINT sessions_address DO NOTHING
  RETURNING ${stateColumns}
), updated AS (
  UPDATE sessions s SET revision = l.revision + 1, entry_names = $7, entry_values = $8, session_id = $6,
    session_no = CASE WHEN l.is_reset THEN nextval('session_numbers') ELSE l.session_no END,
    last_seq = CASE WHEN l.is_reset THEN 0 ELSE l.last_seq END,
    head_id = CASE WHEN l.is_reset THEN NULL ELSE l.head_id END,
    window_seq = CASE WHEN l.is_reset THEN NULL ELSE l.window_seq END,
    fence = CASE WHEN l.is_reset THEN 0 ELSE l.fence END,
    turn_id = CASE WHEN l.is_reset THEN NULL ELSE l.turn_id END,
    turn_owner = CASE WHEN l.is_reset THEN NULL ELSE l.turn_owner END,
    lease_until_ms = CASE WHEN l.is_reset THEN NULL ELSE l.lease_until_ms END,
    message_count = CASE WHEN l.is_reset THEN 0 ELSE l.message_count END,
    created_at_ms = CASE WHEN l.is_reset THEN c.now_ms ELSE l.created_at_ms END,
    updated_at_ms = CASE WHEN l.is_reset THEN c.now_ms ELSE greatest(l.updated_at_ms, c.claimed_ms) END
  FROM locked l CROSS JOIN claim c
  WHERE s.namespace = $1 AND s.agent_id = $2 AND s.key = $3 AND s.archive_id = $4
    AND l.revision = $5 AND l.archive_id = ''
  RETURNING ${columns("new")}, old AS old_row, l.is_reset
), archived AS (
  INSERT INTO sessions
  SELECT (o).namespace, (o).agent_id, (o).key, (o).session_id, (o).session_no, (o).session_id, (o).revision,
    (o).entry_names, (o).entry_values, (o).last_seq, (o).head_id, (o).window_seq, (o).fence, (o).turn_id,
    (o).turn_owner, (o).lease_until_ms, (o).message_count, (o).created_at_ms, (o).updated_at_ms
  FROM (SELECT old_row AS o FROM updated WHERE is_reset) AS old_rows
)
SELECT 'SAVED' AS verdict, ${stateColumns} FROM created
UNION ALL SELECT 'SAVED', ${stateColumns} FROM updated
UNION ALL SELECT CASE WHEN archive_id <> '' THEN 'SESSION_ARCHIVED' ELSE 'REVISION_CONFLICT' END, ${stateColumns}
FROM locked WHERE NOT EXISTS (SELECT FROM updated) AND NOT EXISTS (SELECT FROM created)`;

/**
 * One page: the session's last seq and the records come from one snapshot. The page ends when it holds \`$8\` bytes, with
 * at least one record. \`$9\` is the session a first page was of: a reset between two pages must not change sides.
 */
export function readStatement(order: "ascending" | "descending"): string {
  const direction = order === "ascending" ? "ASC" : "DESC";
  return `
SELECT s.session_no, s.last_seq, r.*
FROM sessions s LEFT JOIN LATERAL (
  SELECT * FROM (
    SELECT seq, id, parent_id, type, side, timestamp, ts_ms, stored_at_ms, bytes, crc, rest, source,
      sum(bytes) OVER (ORDER BY seq ${direction}) - bytes AS bytes_before
    FROM records
    WHERE session_no = s.session_no AND seq > $5::bigint AND seq < $6::bigint
    ORDER BY seq ${direction} LIMIT $7::int
  ) AS candidates
  WHERE bytes_before < $8::bigint
) AS r ON true
WHERE s.namespace = $1::text AND s.agent_id = $2::text AND s.key = $3::text
  AND CASE WHEN $9::bigint IS NULL THEN s.archive_id = $4::text ELSE s.session_no = $9 END
ORDER BY r.seq ${direction}`;
}

function columns(version: "new"): string {
  return stateColumns
    .split(/,\s*/)
    .map((column) => `${version}.${column}`)
    .join(", ");
}
