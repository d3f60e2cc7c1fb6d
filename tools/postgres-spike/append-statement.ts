/** Four texts, each prepared once a connection. */
export interface AppendParts {
  readonly isKeyed: boolean;
  readonly hasEntry: boolean;
}

/**
 * An append, whatever becomes of it, in one statement:
 *
 * - `locked` takes the session's row lock. After a wait it gives the newest row, not that of the statement's snapshot.
 * - `timed` reads the database's clock, after the wait: the time a transaction began would let a lease run on.
 * - `judged` says what speaks against the append.
 * - `claimed` settles the idempotency key. Only INSERT … ON CONFLICT DO UPDATE sees rows that were committed after the
 *   snapshot; a plain look-up here would miss the twin that we have just waited for. A refused append leaves its
 *   claim without a result, which counts as none. `began` is where the first append found the session and what
 *   it asked for: a twin gets the first result, whatever its own options say.
 * - `decided` holds the verdict; `updated` and `inserted` act on it.
 *
 * The answer is the state before, and the clock: what the append made of them follows by core's own functions.
 * Every outcome gives exactly one row, except a session that does not exist (none) and an id that is taken (the unique
 * index raises 23505, and nothing of the statement stays).
 *
 * The UPDATE finds its row by address: the address stays when a reset changes the session under it. No part hands on
 * more columns than the next one uses: setting up expressions, not data, is what this statement's time goes into.
 */
export function appendStatement({ isKeyed, hasEntry }: AppendParts): string {
  return `
WITH locked AS MATERIALIZED (
  SELECT session_no, archive_id, session_id, revision, last_seq, head_id, window_seq, fence, turn_id, turn_owner,
    lease_until_ms, CASE WHEN $18::text[] IS NOT NULL THEN entry_names END AS names,
    CASE WHEN $18 IS NOT NULL THEN entry_values END AS values
  FROM sessions
  WHERE namespace = $1::text AND agent_id = $2::text AND key = $3::text AND archive_id = $4::text
  FOR UPDATE
), timed AS MATERIALIZED (
  SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
    -- Holds until this statement's own commit.
    set_config('synchronous_commit', $5::text, true) AS durability
  FROM locked
), judged AS MATERIALIZED (
  SELECT CASE
      WHEN l.archive_id <> '' THEN 'SESSION_ARCHIVED'
      WHEN ($6::text IS NULL AND $7::boolean OR $6 = 'open') AND l.turn_id IS NOT NULL AND l.lease_until_ms > t.now_ms
        THEN 'SESSION_BUSY'
      WHEN $6 = 'open' AND $8::bigint <> l.fence + 1 THEN 'TURN_FENCED'
      WHEN $6 <> 'open' AND ($8 <> l.fence OR l.turn_id IS NULL) THEN 'TURN_FENCED'
      WHEN $12::boolean AND l.head_id IS DISTINCT FROM $13::text THEN 'APPEND_CONFLICT'
    END AS refusal
  FROM locked l CROSS JOIN timed t
), claimed AS (${isKeyed ? claimedPart : noClaimPart}), decided AS MATERIALIZED (
  SELECT c.first_began,
    CASE
      WHEN c.first_began IS NOT NULL AND c.first_digest = $22 THEN 'REPLAYED'
      WHEN c.first_began IS NOT NULL THEN 'IDEMPOTENCY_MISMATCH'
      ELSE coalesce(j.refusal, 'APPLIED')
    END AS verdict
  FROM judged j LEFT JOIN claimed c ON true
), patched AS MATERIALIZED (${hasEntry ? patchedPart : noPatchPart}), updated AS (
  UPDATE sessions s SET
    last_seq = s.last_seq + $14,
    head_id = CASE WHEN $15::boolean THEN $16::text WHEN $7 THEN $17::text ELSE s.head_id END,
    window_seq = coalesce($20::bigint, s.window_seq),
    revision = s.revision + CASE WHEN $18 IS NULL THEN 0 ELSE 1 END,
    fence = CASE WHEN $6 = 'open' THEN $8 ELSE s.fence END,
    turn_id = CASE $6 WHEN 'open' THEN $9::text WHEN 'close' THEN NULL ELSE s.turn_id END,
    turn_owner = CASE $6 WHEN 'open' THEN $10::text WHEN 'close' THEN NULL ELSE s.turn_owner END,
    lease_until_ms = CASE WHEN $6 IN ('open', 'renew') THEN $11::bigint WHEN $6 = 'close' THEN NULL ELSE s.lease_until_ms END,
    message_count = s.message_count + cardinality(array_positions($27::text[], 'message')),
    entry_names = coalesce(p.names, s.entry_names), entry_values = coalesce(p.values, s.entry_values),
    updated_at_ms = greatest(s.updated_at_ms, CASE WHEN $14 > 0 THEN t.now_ms END,
      CASE WHEN $23::bigint > t.now_ms + 300000 THEN t.now_ms ELSE $23 END)
  FROM decided d CROSS JOIN timed t CROSS JOIN patched p
  WHERE s.namespace = $1 AND s.agent_id = $2 AND s.key = $3 AND s.archive_id = $4 AND d.verdict = 'APPLIED'
), inserted AS (
  INSERT INTO records (session_no, seq, id, parent_id, type, side, timestamp, ts_ms, stored_at_ms, bytes, crc, rest, source)
  SELECT l.session_no, l.last_seq + r.place, r.id, CASE WHEN r.on_head THEN l.head_id ELSE r.parent_id END,
    r.type, r.side, r.timestamp, r.ts_ms, t.now_ms,
    -- The length of the line: what the writer knows, and the parent that only the session knows.
    r.bytes + CASE WHEN r.on_head THEN octet_length(coalesce(to_json(l.head_id)::text, 'null')) ELSE 0 END,
    r.crc, r.rest, r.source
  FROM decided d CROSS JOIN locked l CROSS JOIN timed t
    CROSS JOIN unnest($24::text[], $26::text[], $28::boolean[], $27, $29::boolean[], $30::text[], $25::bigint[], $31::int[],
      $32::bigint[], $33::text[], $34::bytea[])
      WITH ORDINALITY AS r (id, parent_id, on_head, type, side, timestamp, ts_ms, bytes, crc, rest, source, place)
  WHERE d.verdict = 'APPLIED'
)
SELECT d.verdict, d.first_began, t.now_ms, l.session_id, l.revision, l.last_seq, l.head_id, l.window_seq, l.fence,
  l.turn_id, l.turn_owner, l.lease_until_ms
FROM decided d CROSS JOIN locked l CROSS JOIN timed t`;
}

/** The key's part and the entry's, or what stands for them in an append without: unused parts cost time to set up. */
const claimedPart: string = `
  INSERT INTO idempotency AS i (session_no, key, digest, first_seq, last_seq, at_ms, began)
  SELECT l.session_no, $21::text, $22::text, CASE WHEN j.refusal IS NULL THEN l.last_seq + 1 END,
    CASE WHEN j.refusal IS NULL THEN l.last_seq + $14::int END, t.now_ms,
    CASE WHEN j.refusal IS NULL THEN json_build_array(
      json_build_object('session_id', l.session_id, 'revision', l.revision, 'last_seq', l.last_seq,
        'head_id', l.head_id, 'window_seq', l.window_seq, 'fence', l.fence, 'turn_id', l.turn_id,
        'turn_owner', l.turn_owner, 'lease_until_ms', l.lease_until_ms, 'now_ms', t.now_ms),
      $24::text[], $25::bigint[], $35::text)::text END
  FROM locked l CROSS JOIN timed t CROSS JOIN judged j WHERE $21 IS NOT NULL AND l.archive_id = ''
  ON CONFLICT (session_no, key) DO UPDATE SET
    digest = CASE WHEN i.began IS NULL THEN excluded.digest ELSE i.digest END,
    first_seq = coalesce(i.first_seq, excluded.first_seq),
    last_seq = coalesce(i.last_seq, excluded.last_seq),
    at_ms = CASE WHEN i.began IS NULL THEN excluded.at_ms ELSE i.at_ms END,
    began = coalesce(i.began, excluded.began)
  RETURNING old.digest AS first_digest, old.began AS first_began
`;

const noClaimPart: string = `
  SELECT $22::text AS first_digest, $21::text || $25::bigint[]::text || $35::text AS first_began WHERE false
`;

const patchedPart: string = `
  SELECT array_agg(f.name ORDER BY f.place) AS names, array_agg(f.value ORDER BY f.place) AS values
  FROM locked l CROSS JOIN LATERAL (
    SELECT e.name, CASE WHEN p.name IS NULL THEN e.value ELSE p.value END AS value, e.place
    FROM unnest(l.names, l.values) WITH ORDINALITY AS e (name, value, place)
    LEFT JOIN unnest($18, $19::text[]) AS p (name, value) ON p.name = e.name
    UNION ALL
    SELECT p.name, p.value, cardinality(l.names) + p.place
    FROM unnest($18, $19) WITH ORDINALITY AS p (name, value, place) WHERE p.name <> ALL (l.names)
  ) f
  WHERE $18 IS NOT NULL AND f.value IS NOT NULL
`;

const noPatchPart: string = `
  SELECT NULL::text[] AS names, $19::text[] AS values
`;
