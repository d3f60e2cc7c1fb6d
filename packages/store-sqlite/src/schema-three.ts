/**
 * Children: which records name one as their parent. An index on `store_records` would add a page to the log with every
 * turn. So it is a table of its own, filled after the log up to `entered_to`, a number of `store_records`.
 */
const tables = `
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
export const origins: string = `WITH RECURSIVE up (session, to_seq) AS (
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
const view = `
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
export const schemaThree: string = tables + view;
